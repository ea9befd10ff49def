"""Two measured climate series: carbon dioxide at Mauna Loa, and the sea off Peru.

Usage: python climate.py [number of resamplings]
"""

import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
WEEKS_A_YEAR = 365.2425 / 7


def fill_gaps(values):
    """Replace missing weeks by straight lines between their neighbours."""
    known = ~np.isnan(values)
    weeks = np.arange(values.size)
    filled = values.copy()
    filled[~known] = np.interp(weeks[~known], weeks[known], values[known])
    return filled


def harmonics(years, count):
    """Columns of sines and cosines of one cycle a year and its overtones."""
    angle = 2 * np.pi * np.arange(1, count + 1) * years[:, None]
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def least_squares(columns, values):
    return np.linalg.solve(columns.T @ columns, columns.T @ values)


def autocorrelation(values, lags):
    centred = values - values.mean()
    products = [(centred[lag:] * centred[: centred.size - lag]).sum() for lag in lags]
    return np.array(products) / (centred**2).sum()


# --- carbon dioxide: trend, seasonal cycle, what is left ----------------------------------------------------------

table = np.genfromtxt(DATA / "mauna_loa_co2.csv", delimiter=",", skip_header=1)
measured = table[:, 1]
co2 = fill_gaps(measured)
years = 1958 + (87 + 7 * np.arange(co2.size)) / 365.2425

print("Carbon dioxide at Mauna Loa, weekly")
print(f"  {co2.size} weeks, {np.isnan(measured).sum()} of them missing, {years[0]:.2f} to {years[-1]:.2f}")
print(f"  from {co2[:52].mean():.2f} ppm in the first year to {co2[-52:].mean():.2f} ppm in the last")

elapsed = (years - years.mean()) / 10  # decades from the middle
trend_columns = np.stack([np.ones_like(elapsed), elapsed, elapsed**2], axis=1)
cycle_columns = harmonics(years, 3)
columns = np.concatenate([trend_columns, cycle_columns], axis=1)
weights = least_squares(columns, co2)
trend = trend_columns @ weights[:3]
cycle = cycle_columns @ weights[3:]
rest = co2 - trend - cycle

print(
    f"  growth {weights[1] / 10:.3f} ppm a year in {years.mean():.0f}, faster by {2 * weights[2] / 10:.3f} each decade"
)
print(
    f"  seasonal cycle {cycle.max() - cycle.min():.2f} ppm from peak to trough, "
    f"highest in {12 * (years[cycle[:52].argmax()] % 1):.1f} months, lowest in {12 * (years[cycle[:52].argmin()] % 1):.1f}"
)
print(
    f"  standard deviation: {co2.std():.3f} measured, {rest.std():.3f} left, explained {1 - rest.var() / co2.var():.5f}"
)
print(
    "  autocorrelation of the rest after 1, 4, 13, 26 and 52 weeks:", autocorrelation(rest, [1, 4, 13, 26, 52]).round(3)
)

# The growth of each year, from a running mean over 52 weeks
total = np.cumsum(co2)
running = (total[52:] - total[:-52]) / 52
growth = running[52:] - running[:-52]
fastest = growth.argmax()
print(
    f"  fastest growth in a year: {growth[fastest]:.2f} ppm up to {years[104 + fastest]:.1f}; slowest {growth.min():.2f} ppm"
)

# How sure is the growth? Shift the rest around the series many times, fit again.
resamplings = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
shifts = (np.arange(1, resamplings + 1) * 997) % rest.size
shifted = rest[(np.arange(rest.size) + shifts[:, None]) % rest.size]  # a row for each
slopes = weights[1] / 10 + (shifted * elapsed).sum(axis=1) / (elapsed**2).sum() / 10
print(f"  growth over {resamplings} resamplings: {slopes.mean():.4f} +- {slopes.std():.4f} ppm a year")

# --- El Nino: anomalies of the sea's temperature -------------------------------------------------------------------

sea = np.loadtxt(DATA / "el_nino_sea_temperature.csv", delimiter=",", skiprows=1)
calendar, temperature = sea[:, 0].astype(int), sea[:, 1:]
anomaly = temperature - temperature.mean(axis=0)
score = anomaly / temperature.std(axis=0, ddof=1)
months = anomaly.reshape(-1)
smooth = (months[:-2] + months[1:-1] + months[2:]) / 3

print("Sea surface off Peru, monthly")
print(
    f"  {temperature.size} months, mean {temperature.mean():.2f} C, warmest month of the year {temperature.mean(axis=0).argmax() + 1}"
)
warm, cold = smooth > 1.0, smooth < -1.0
print(f"  three-month means above +1 C: {np.count_nonzero(warm)}, below -1 C: {np.count_nonzero(cold)}")
begins = np.flatnonzero(warm[1:] & ~warm[:-1]) + 1
print("  warm spells begin in:", sorted({int(calendar[(month + 1) // 12]) for month in begins}))
yearly = anomaly.mean(axis=1)
order = np.argsort(-yearly)[:5]
print("  warmest years:", ", ".join(f"{calendar[place]} ({yearly[place]:+.2f})" for place in order))
print(f"  extreme months (beyond 2 standard deviations): {(np.abs(score) > 2).sum()} of {score.size}")
print("  autocorrelation after 1, 6, 12 and 24 months:", autocorrelation(months, [1, 6, 12, 24]).round(3))
