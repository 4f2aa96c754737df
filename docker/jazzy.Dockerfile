# bipedsim in a workspace of ROS 2 Jazzy, built by colcon. In the checkout:
#     docker build --file docker/jazzy.Dockerfile --tag bipedsim:jazzy .
#     docker run --rm --network host --ipc host bipedsim:jazzy ros2 launch bipedsim sim.launch.py
# Use another distribution with --build-arg ROS_DISTRO=kilted.
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}
WORKDIR /ws
COPY . src/bipedsim
# rosdep has no key for the packages that pip installs (docs/dependencies.md).
RUN apt-get update \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && apt-get install --yes --no-install-recommends python3-pip \
    && PIP_BREAK_SYSTEM_PACKAGES=1 rosdep install --from-paths src --ignore-src --dependency-types exec --default-yes \
    && pip install --break-system-packages --no-cache-dir daqp lazy-loader 'mcap>=1.6' example-robot-data \
    && rm -rf /var/lib/apt/lists/*
RUN . "/opt/ros/$ROS_DISTRO/setup.sh" && colcon build --packages-select bipedsim
ENV OMP_NUM_THREADS=1
RUN . install/setup.sh && bipedsim warmup
# The entry point of the base image sources ROS 2 alone.
RUN printf '#!/bin/bash\nset -e\nsource /ws/install/setup.bash\nexec "$@"\n' > /entrypoint.sh && chmod +x /entrypoint.sh
ENTRYPOINT ["/entrypoint.sh"]
CMD ["ros2", "launch", "bipedsim", "sim.launch.py"]
