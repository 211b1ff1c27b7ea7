#!/usr/bin/python3
"""Predict the throughput of several devices from that of one, and fit what the machine files say of it.

Usage: fit_scaling.py MEASURED.csv [--build BUILD] [--machines MACHINES] [--rounds N] [--write]

Each row of several devices is paired with the row of one device that has the same source, model, system, GPU, batch,
precision and note. BUILD/bench_many_devices tells what data parallelism takes where one device takes what was
measured. Figures of the machine files whose source begins with "fitted:" are constants (bench/fit_set_up.py), fitted
to the least mean of absolute errors of all rows together. Prints each row: images a second as measured, as predicted,
by linear scaling, and relative errors |measured / predicted - 1|; "unseen" is by constants from which the rows of its
model were taken again, by one step of Newton's method. --rounds 0 fits nothing: it judges the files as they are.
"""
import argparse
import collections
import csv
import math
import os
import subprocess
import tempfile

import numpy

import fit_devices
import fit_set_up

# What is in no zoo is predicted by its seconds on one device, which are measured, and the gradients of one like it.
STAND_INS = {
    "efficientnet-widese-b0": "efficientnet-b0",
    "efficientnet-widese-b4": "efficientnet-b4",
    "ssd300-resnet50": "resnet50",
    "ssd320-fpn-resnet50": "resnet50",
    "U-Net-3D (BraTS)": "unet3d:size=64",
    "V-Net (hippocampus, 3D)": "unet3d:size=32",
    "U-Net-medical-2D": "unet3d:size=32,width=40",
}
SAME = ("source", "model", "system", "gpu", "batch_per_gpu", "precision", "note")
SYSTEMS = {"AWS p2.8xlarge": "k80", "AWS p2.8xlarge cluster": "k80", "GCE n1-standard-32-k80x8": "k80-gce",
           "DGX-2": "dgx2"}
DGX = {"P100-SXM2-16GB": "dgx1-p100", "V100-SXM2-16GB": "dgx1-v100", "V100-SXM2-32GB": "dgx1-v100",
       "A100-SXM4-40GB": "dgx-a100", "A100-SXM4-80GB": "dgx-a100-80gb"}
REPLICATED = ("alexnet", "vgg16")  # on the DGX-1 with P100; TensorFlow kept variables of others on the CPU
PRIOR_WEIGHT = 0.02  # of a constant's squared logarithm, in the unit of a row's absolute one
DELTA = 0.05  # of the logarithm of a constant, to see what it changes
SMALL = 0.01  # of residuals: below, squares count
MOST = 0.7  # of a step of the logarithm of a constant


class Case:
    """A row of several devices with its row of one."""

    def __init__(self, row, one):
        self.model, self.note = row["model"], row["note"]
        self.system, self.gpu, self.precision = row["system"], row["gpu"], row["precision"]
        self.ranks, self.batch = int(row["gpus"]), one["batch"]
        self.measured, self.linear = float(row["images_per_s"]), self.ranks * float(one["images_per_s"])
        self.machine = SYSTEMS.get(self.system) or DGX[self.gpu]
        self.release = self.find_release()
        data = "synthetic" if "synthetic" in self.note else "real"
        self.asked = "%s %d %d %.9g %s\n" % (one["zoo"], self.batch, self.ranks, one["seconds"], data)

    def find_release(self):
        """What the machine files tell set-ups apart by."""
        if self.machine == "dgx1-p100" and self.model not in REPLICATED:
            return ":parameter-server"
        software = self.note.split("-")[0].split(" ")[0]
        return {"tensorflow": ":tensorflow", "TF2": ":tensorflow2"}.get(software, "")

    def group(self):
        """System, framework, data."""
        software = self.note.split("-")[0].split(" ")[0].replace("tf_cnn_benchmarks,", "tensorflow-2017")
        data = ", real" if "real data" in self.note else ", synthetic" if "synthetic" in self.note else ""
        return "%s %s %s%s" % (self.system, self.gpu.split("-")[0].split(" ")[0], software, data)

    def error(self, predicted):
        """Relative error of images a second."""
        return abs(self.measured / predicted - 1.0)


def read_cases(path):
    """Rows of several devices that have one of one; the total batch grows with the devices."""
    ones = {tuple(row[key] for key in SAME): row
            for row in fit_devices.read_rows(path, {**fit_devices.MODELS, **STAND_INS})}
    rows = [(row, ones.get(tuple(row[key] for key in SAME))) for row in csv.DictReader(open(path))
            if row["gpus"] != "1"]
    return [Case(row, one) for row, one in rows if one and "STRONG" not in row["note"]]


class Predictor:
    """Images a second of cases by machine files with other constants; what was asked before is remembered."""

    def __init__(self, options, cases):
        self.build, self.cases, self.known = options.build, cases, {}
        self.paths = {name: os.path.join(options.machines, name + ".yaml") for name in {c.machine for c in cases}}
        self.texts = {name: open(path).read() for name, path in self.paths.items()}
        self.start = {key: value for text in self.texts.values()
                      for key, value in fit_set_up.find_constants(text).items()}

    def ask(self, text, release, precision, asked):
        """Seconds of lines of bench_many_devices."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            told = subprocess.run([os.path.join(self.build, "bench_many_devices"), file.name + release, precision],
                                  input="".join(asked), stdout=subprocess.PIPE, universal_newlines=True, check=True)
        return [float(line.split()[0]) for line in told.stdout.splitlines()]

    def predict(self, values, cases):
        """Images a second of cases."""
        parts = collections.defaultdict(list)
        for case in cases:
            text = fit_set_up.put_constants(self.texts[case.machine], values)
            parts[text, case.release, fit_devices.PRECISIONS[case.precision]].append(case.asked)
        for key, asked in parts.items():
            new = sorted({line for line in asked if key + (line,) not in self.known})
            if new:
                self.known.update({key + (line,): seconds for line, seconds in zip(new, self.ask(*key, new))})
        return numpy.array([case.ranks * case.batch / self.known[
            fit_set_up.put_constants(self.texts[case.machine], values), case.release,
            fit_devices.PRECISIONS[case.precision], case.asked] for case in cases])

    def find_slopes(self, values):
        """Residuals of all cases, logarithms, and how they change with that of each constant."""
        measured = numpy.array([case.measured for case in self.cases])
        now = numpy.log(self.predict(values, self.cases) / measured)
        slopes = [numpy.log(self.predict({**values, key: value * math.exp(DELTA)}, self.cases) / measured) - now
                  for key, value in values.items()]
        return now, numpy.array(slopes).T / DELTA

    def move(self, values, now, slopes, without=None):
        """Constants after a step towards the least sum of absolute residuals over the rows of all models but one."""
        weight = numpy.array([0.0 if case.model == without else 1.0 / max(abs(r), SMALL)
                              for case, r in zip(self.cases, now)])
        far = numpy.array([math.log(value / self.start[key]) for key, value in values.items()])
        normal = (slopes.T * weight) @ slopes + PRIOR_WEIGHT * numpy.eye(len(far))
        step = numpy.linalg.solve(normal, -(slopes.T * weight) @ now - PRIOR_WEIGHT * far)
        return {key: value * math.exp(change)
                for (key, value), change in zip(values.items(), numpy.clip(step, -MOST, MOST))}

    def fit(self, rounds):
        """Constants of the least mean absolute residual that was met, with residuals and slopes there."""
        values, best = dict(self.start), None
        for _ in range(rounds + 1):
            now, slopes = self.find_slopes(values)
            if best is None or abs(now).sum() < abs(best[1]).sum():
                best = values, now, slopes
            values = self.move(values, now, slopes)
        return best


def mean(errors):
    return 100.0 * sum(errors) / len(errors)


def report(cases, rates, unseen):
    """Rows, then means by group and of all."""
    groups = collections.defaultdict(list)
    print("%-24s %-16s n batch  measured predicted    linear  error unseen linear" % ("model", "machine"))
    for case, rate, left in zip(cases, rates, unseen):
        errors = [case.error(rate), case.error(left), case.error(case.linear)]
        groups[case.group()].append(errors)
        print("%-24s %-16s %2d %5d %9.1f %9.1f %9.1f %6.1f %6.1f %6.1f  %s" % (
            case.model, case.machine, case.ranks, case.batch, case.measured, rate, case.linear,
            *[100 * e for e in errors], case.note[-40:]))
    print("\n| group | rows | error % | unseen % | linear % |\n|---|---|---|---|---|")
    groups["all"] = sum(groups.values(), [])
    for group, errors in groups.items():
        print("| %s | %d | %.1f | %.1f | %.1f |" % (group, len(errors), *[mean(e) for e in zip(*errors)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured")
    parser.add_argument("--build", default="build")
    parser.add_argument("--machines", default="machines")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--write", action="store_true", help="put the constants into the machine files")
    options = parser.parse_args()
    cases = read_cases(options.measured)
    predictor = Predictor(options, cases)
    values, now, slopes = predictor.fit(options.rounds)
    rates = predictor.predict(values, cases)
    unseen = dict(zip(cases, rates))
    for model in sorted({case.model for case in cases}) if options.rounds else []:
        some = [case for case in cases if case.model == model]
        unseen.update(zip(some, predictor.predict(predictor.move(values, now, slopes, model), some)))
    for key, value in values.items():
        print("%-10.4g %s" % (value, key))
    report(cases, rates, [unseen[case] for case in cases])
    if options.write:
        for name, text in predictor.texts.items():
            with open(predictor.paths[name], "w") as file:
                file.write(fit_set_up.put_constants(text, values))


if __name__ == "__main__":
    main()
