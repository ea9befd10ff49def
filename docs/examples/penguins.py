"""Which penguin is it? Softmax regression on four measurements, trained by gradient descent with momentum.

Usage: python penguins.py [steps]
"""

import csv
import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data" / "penguins.csv"
MEASUREMENTS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def read(path):
    """Measurements and species of the penguins that were measured."""
    with open(path, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["bill_length_mm"] != "NA"]
    values = np.array([[float(row[name]) for name in MEASUREMENTS] for row in rows])
    species = sorted({row["species"] for row in rows})
    labels = np.array([species.index(row["species"]) for row in rows])
    return values, labels, species


def features(values, mean, deviation):
    """Standard scores, their squares and products, and a constant."""
    score = (values - mean) / deviation
    first, second = np.triu_indices(score.shape[1])
    products = score[:, first] * score[:, second]
    return np.concatenate([np.ones((len(score), 1)), score, products], axis=1)


def log_softmax(scores):
    shifted = scores - scores.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def loss(inputs, targets, weights, decay):
    return -(targets * log_softmax(inputs @ weights)).sum() / len(inputs) + decay * (weights**2).sum()


def gradient(inputs, targets, weights, decay):
    probability = np.exp(log_softmax(inputs @ weights))
    return inputs.T @ (probability - targets) / len(inputs) + 2 * decay * weights


def accuracy(inputs, labels, weights):
    return ((inputs @ weights).argmax(axis=1) == labels).mean()


values, labels, species = read(DATA)
print(
    f"{len(values)} penguins: " + ", ".join(f"{(labels == index).sum()} {name}" for index, name in enumerate(species))
)
for name, low, mean, high in zip(MEASUREMENTS, values.min(axis=0), values.mean(axis=0), values.max(axis=0)):
    print(f"  {name:<18} from {low:.1f} to {high:.1f}, mean {mean:.2f}")

# Every third penguin is kept for the test
testing = np.arange(len(values)) % 3 == 0
mean, deviation = values[~testing].mean(axis=0), values[~testing].std(axis=0)
training_inputs, testing_inputs = (features(values[chosen], mean, deviation) for chosen in (~testing, testing))
training_labels, testing_labels = labels[~testing], labels[testing]
targets = (training_labels[:, None] == np.arange(len(species))).astype(float)

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 600
decay, rate, momentum = 1e-4, 0.2, 0.9
weights = np.zeros((training_inputs.shape[1], len(species)))
velocity = np.zeros_like(weights)
print("step    loss  accuracy in training")
for step in range(steps + 1):
    if step % 100 == 0:
        current = loss(training_inputs, targets, weights, decay)
        print(f"{step:4d}  {current:.4f}  {accuracy(training_inputs, training_labels, weights):.4f}")
    velocity *= momentum
    velocity -= rate * gradient(training_inputs, targets, weights, decay)
    weights += velocity

# Is the gradient right? Compare it with differences of the loss.
slope = gradient(training_inputs, targets, weights, decay)
worst = 0.0
for row, column in [(0, 0), (2, 1), (5, 2)]:
    moved = weights.copy()
    moved[row, column] += 1e-5
    above = loss(training_inputs, targets, moved, decay)
    moved[row, column] -= 2e-5
    below = loss(training_inputs, targets, moved, decay)
    worst = max(worst, abs((above - below) / 2e-5 - slope[row, column]))
print("gradient agrees with differences of the loss:", bool(worst < 1e-7))

predicted = (testing_inputs @ weights).argmax(axis=1)
print(
    f"accuracy on the {len(testing_labels)} penguins kept for the test: {accuracy(testing_inputs, testing_labels, weights):.4f}"
)
print("confusion (row: true, column: predicted)")
confusion = np.zeros((len(species), len(species)), dtype=int)
np.add.at(confusion, (testing_labels, predicted), 1)
print(confusion)

probability = np.exp(log_softmax(testing_inputs @ weights))
entropy = -(probability * np.log(np.maximum(probability, 1e-300))).sum(axis=1)
doubtful = np.argsort(-entropy)[:3]
print("most doubtful:")
for place in doubtful:
    shares = ", ".join(f"{name} {share:.3f}" for name, share in zip(species, probability[place]))
    print(f"  {values[testing][place]}  {shares}  really {species[testing_labels[place]]}")
