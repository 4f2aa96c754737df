"""Read heights on a grid from files: numpy arrays, images and GeoTIFF.

The GeoTIFF tags are those of OGC 19-008r4. The tag of missing values is that of GDAL.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bipedsim.config import HEIGHT_SUFFIXES
from bipedsim.errors import ConfigError
from bipedsim.ground.field import MOST_CELLS
from bipedsim.numerics import Array

_PIXEL_SCALE, _TRANSFORMATION, _GEO_KEYS, _NO_DATA = 33550, 34264, 34735, 42113
_MODEL_TYPE, _LINEAR_UNITS, _VERTICAL_UNITS = 1024, 3076, 4099
_GEOGRAPHIC, _METRE = 2, 9001


class HeightGrid(NamedTuple):
    """Heights of a file.

    Attributes:
        heights: (X, Y) [m], those of an image from 0 to 1.
        cells: Distance of two heights along x and y [m]; None if the file does not contain it.
        grey: Whether the heights are those of an image, so that their unit is not part of the file.
    """

    heights: Array
    cells: tuple[float, float] | None = None
    grey: bool = False


def read_heights(path: Path) -> HeightGrid:
    """Return the heights of a file.

    Raises:
        ConfigError: The file is missing, damaged or a pipe, its suffix is not one of ``HEIGHT_SUFFIXES``, or a GeoTIFF
            is not in metres, has several bands or missing values.
    """
    suffix = path.suffix.lower()
    is_tiff = suffix in (".tif", ".tiff")
    if suffix not in HEIGHT_SUFFIXES:
        raise ConfigError(f"must end in {', '.join(HEIGHT_SUFFIXES)}", "file", str(path))
    if path.exists() and not path.is_file():
        # Opening a pipe without a writer would wait for one.
        raise ConfigError("is a folder or a pipe. Use a file", "file", str(path))
    from PIL import Image, UnidentifiedImageError

    try:
        if suffix == ".npy":
            return HeightGrid(_array(path))
        with Image.open(path) as image:
            _check_size(image.width * image.height, path)
            if is_tiff:
                return _geotiff(image, path)
            return HeightGrid(_grey(image, path), grey=True)
    except (OSError, ValueError, TypeError, EOFError, Image.DecompressionBombError) as error:
        unknown = isinstance(error, UnidentifiedImageError) and is_tiff
        hint = ". Convert it, for example with gdal_translate -ot Float32 -co COMPRESS=DEFLATE" if unknown else ""
        raise ConfigError(f"cannot be read as heights: {error}{hint}", "file", str(path)) from error


def _check_size(cells: int, path: Path) -> None:
    """Check the number of heights before they take memory."""
    if cells > MOST_CELLS:
        problem = f"has more than {MOST_CELLS} heights. Use every second one, and twice the cell"
        raise ConfigError(problem, "file", str(path))


def _array(path: Path) -> Array:
    """Return the array of a .npy file."""
    # The header is read without memory for the values.
    array = np.lib.format.open_memmap(path, mode="r")
    _check_size(array.size, path)
    if array.dtype.kind not in "biuf":
        raise ConfigError(f"has values of type {array.dtype}, and heights are real numbers", "file", str(path))
    return np.array(array, dtype=np.float64)


def _grey(image: Any, path: Path) -> Array:
    """Return the grey values (X, Y) of an open PNG, from 0 to 1.

    Raises:
        ConfigError: The image has colours or transparent pixels, which are no heights; or 16 bits and several channels,
            of which Pillow reads only 8.
    """
    if image.mode in ("L", "I", "I;16", "I;16B", "1"):
        full = 255.0 if image.mode in ("L", "1") else 65535.0
        return _along_x(image.convert("L") if image.mode == "1" else image) / full
    if image.info.get("transparency") is None and image.mode not in ("RGB", "RGBA", "LA", "P"):
        raise ConfigError(f"is an image of mode {image.mode}. Save it in grey", "file", str(path))
    with path.open("rb") as file:
        depth = file.read(25)[-1]
    pixels = np.asarray(image.convert("RGBA"))
    if depth > 8 or (pixels[..., :1] != pixels[..., :3]).any() or (pixels[..., 3] != 255).any():
        why = "16 bits and several channels" if depth > 8 else "colours or transparent pixels"
        raise ConfigError(f"has {why}, which are no heights. Save it in grey, with 8 or 16 bits", "file", str(path))
    return _along_x(pixels[..., 0]) / 255.0


def _along_x(image: Any) -> Array:
    """Return an image or its pixels (rows, columns) as an array (X, Y), x to the right and y up."""
    return np.asarray(image, dtype=np.float64)[::-1].T


def _geotiff(image: Any, path: Path) -> HeightGrid:
    """Return the heights of an open TIFF with one band."""
    if image.mode == "P":
        raise ConfigError("has colours from a palette, which are no heights", "file", str(path))
    if len(image.getbands()) > 1:
        raise ConfigError(f"has {len(image.getbands())} bands. Extract the one with heights", "file", str(path))
    tags = image.tag_v2
    keys = np.reshape(tags.get(_GEO_KEYS, ())[4:], (-1, 4))
    values = {int(key): int(value) for key, place, _, value in keys if not place}
    if values.get(_MODEL_TYPE) == _GEOGRAPHIC:
        raise ConfigError("has coordinates in degrees. Project it to metres, such as UTM", "file", str(path))
    for key, kind in ((_LINEAR_UNITS, "horizontal"), (_VERTICAL_UNITS, "vertical")):
        if values.get(key, _METRE) != _METRE:
            raise ConfigError(f"has {kind} units other than metres (EPSG {values[key]}). Convert it", "file", str(path))
    heights = _along_x(image)
    missing = tags.get(_NO_DATA)
    if missing is not None:
        # The tag is text, whose number GDAL compares in the type of the pixels.
        value = float(str(missing).strip("\0 "))
        holes = heights == (float(np.float32(value)) if image.mode == "F" else value)
        if holes.any():
            problem = f"has {int(holes.sum())} pixels without a height. Fill them, for example with gdal_fillnodata.py"
            raise ConfigError(problem, "file", str(path))
    return HeightGrid(heights, _cells(tags, path))


def _cells(tags: Any, path: Path) -> tuple[float, float] | None:
    """Return the size of a pixel of a GeoTIFF [m]; None for a TIFF without it."""
    if _PIXEL_SCALE in tags:
        x, y = (float(value) for value in tags[_PIXEL_SCALE][:2])
        return x, y
    if _TRANSFORMATION not in tags:
        return None
    matrix = np.reshape(tags[_TRANSFORMATION], (4, 4))
    if matrix[0, 1] or matrix[1, 0] or not matrix[0, 0] > 0.0 > matrix[1, 1]:
        raise ConfigError("is rotated. Resample it to north up, for example with gdalwarp", "file", str(path))
    return float(matrix[0, 0]), float(-matrix[1, 1])
