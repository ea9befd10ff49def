"""Filters on a photograph, as stencils over slices: blur, edges, sharpening, contrast, and smoothing that keeps edges.

Usage: python photograph.py [steps of smoothing]
"""

import sys
from pathlib import Path

import numpy as np

PHOTOGRAPH = Path(__file__).parent / "data" / "astronaut.npy"


def blur(image, radius):
    """Gaussian blur: one pass along the rows, one along the columns; the border repeats."""
    distance = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (distance / (radius / 2.0)) ** 2)
    weights = (weights / weights.sum()).astype(image.dtype)
    height, width = image.shape
    padded = np.pad(image, radius, mode="edge")
    rows = np.zeros((height + 2 * radius, width), dtype=image.dtype)
    for place, weight in enumerate(weights):
        rows += weight * padded[:, place : place + width]
    result = np.zeros_like(image)
    for place, weight in enumerate(weights):
        result += weight * rows[place : place + height]
    return result


def sobel(image):
    """Gradient across and down, of the inner pixels."""
    across = image[:, 2:] - image[:, :-2]
    across = across[:-2] + 2 * across[1:-1] + across[2:]
    down = image[2:] - image[:-2]
    down = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    return across / 8, down / 8


def smooth_within_edges(image, steps, contrast=0.05, rate=0.2):
    """Perona and Malik's diffusion: neighbours mix unless they differ by an edge."""
    image = image.copy()
    for _ in range(steps):
        north = image[:-2, 1:-1] - image[1:-1, 1:-1]
        south = image[2:, 1:-1] - image[1:-1, 1:-1]
        west = image[1:-1, :-2] - image[1:-1, 1:-1]
        east = image[1:-1, 2:] - image[1:-1, 1:-1]
        flow = sum(step * np.exp(-((step / contrast) ** 2)) for step in (north, south, west, east))
        image[1:-1, 1:-1] += rate * flow
    return image


def stretch(image, low, high):
    """Spread the given range of brightness over 0 to 1."""
    return np.clip((image - low) / (high - low), 0, 1)


def measures(name, image):
    print(
        f"  {name:<12} mean {image.mean():.4f}  deviation {image.std():.4f}  from {image.min():.3f} to {image.max():.3f}"
    )


pixels = np.load(PHOTOGRAPH)
colour = pixels.astype(np.float32) / 255
luminance = colour @ np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)
print(f"Photograph of {pixels.shape[1]} x {pixels.shape[0]} pixels, {pixels.dtype}, {pixels.nbytes} bytes")
print("  mean of red, green and blue:", pixels.mean(axis=(0, 1)).round(2))
measures("luminance", luminance)

soft = blur(luminance, 6)
measures("blurred", soft)

sharp = np.clip(luminance + 0.8 * (luminance - soft), 0, 1)
measures("sharpened", sharp)

across, down = sobel(luminance)
strength = np.hypot(across, down)
direction = np.arctan2(down, across)
edges = strength > strength.mean() + 2 * strength.std()
measures("edges", strength)
print(f"  {np.count_nonzero(edges)} edge pixels, {100 * edges.mean():.2f} % of all")
sectors = ((direction[edges] + np.pi) / (2 * np.pi) * 8).astype(int) % 8
print("  edges by direction, in eighths of a turn:", [int((sectors == sector).sum()) for sector in range(8)])

levels = np.arange(0, 256, 16)
shares = ((pixels[..., 1, None] >= levels) & (pixels[..., 1, None] < levels + 16)).mean(axis=(0, 1))
print("  green in 16 steps of brightness, per cent:", (100 * shares).round(1))
darkest, brightest = levels[np.flatnonzero(shares > 0.01)[[0, -1]]] / 255
contrasty = stretch(luminance, darkest, brightest + 16 / 255)
measures("stretched", contrasty)

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
calm = smooth_within_edges(luminance, steps)
measures("smoothed", calm)
noise, kept = luminance - calm, np.hypot(*sobel(calm))
print(
    f"  {steps} steps took out {noise.std():.5f} and left {100 * kept[edges].mean() / strength[edges].mean():.1f} % of the edges' strength"
)

# Mean and spread in tiles of 64 x 64 pixels
tiles = luminance.reshape(8, 64, 8, 64)
spread = tiles.std(axis=(1, 3))
busiest = divmod(int(spread.argmax()), 8)
print("  brightness of tiles:")
print(tiles.mean(axis=(1, 3)).round(3))
print(f"  busiest tile: row {busiest[0]}, column {busiest[1]}, deviation {spread.max():.4f}")

# Vignette, in place on a copy of the colours
vignette = colour.copy()
row, column = np.ogrid[-1:1:512j, -1:1:512j]
vignette *= (1 - 0.35 * (row**2 + column**2))[..., None].astype(np.float32)
np.maximum(vignette, 0, out=vignette)
back = (vignette * 255).round().astype(np.uint8)
print(f"  after a vignette: mean {back.mean():.2f}, {100 * (back < pixels).mean():.1f} % of the values darker")
