# bipedsim on plain Debian, with ROS 2 Jazzy as wheels. In the checkout:
#     docker build --file docker/debian.Dockerfile --tag bipedsim .
#     docker run --rm --volume "$PWD/runs:/data/runs" bipedsim up --demo
FROM debian:trixie-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libgomp1 python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN python3 -m venv /opt/bipedsim \
    && /opt/bipedsim/bin/pip install --no-cache-dir --constraint /src/requirements/requirements.txt '/src[ros,robots,view]' \
    && rm -rf /src
ENV PATH=/opt/bipedsim/bin:/usr/local/bin:/usr/bin:/bin OMP_NUM_THREADS=1
RUN bipedsim warmup
WORKDIR /data
ENTRYPOINT ["bipedsim"]
CMD ["up", "--demo"]
