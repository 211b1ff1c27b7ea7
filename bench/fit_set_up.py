#!/usr/bin/python3
"""Fit the constants of a machine file to measured iterations.

Usage: fit_set_up.py MACHINE.yaml MEASURED.csv [--build BUILD] [--without MODEL] [--write] [--rounds N]

Every figure of the file whose source begins with "fitted:" is a constant to fit; figures of one text are one constant.
What they are now is the centre of a log-normal prior, so that a constant which no row tells much about stays. The
table is as `convoy compare --measured` reads it; a column `class` that says other than `regular` gives its rows a
weight of 0.3. Prints the mean accuracy by strategy and class. --without leaves out the rows of the models whose names
begin so, and says how well these are predicted then. --write puts the fitted constants into the file.
"""
import argparse
import csv
import json
import math
import os
import re
import subprocess
import tempfile

PRIOR = 0.4  # deviation of the logarithm of a constant
PRIOR_WEIGHT = 0.05  # of a constant at one deviation, in the unit of a row's squared logarithm
FITTED = re.compile(r'\{value: ([0-9.]+)( [A-Za-z/]+)?, source: "(fitted: [^"]*)"\}')


def find_constants(text):
    """Constants by what their text says: value, unit and source together."""
    return {match.group(0): float(match.group(1)) for match in FITTED.finditer(text)}


def put_constants(text, values):
    """A text with other values; constants that are not among them stay."""
    def replace(match):
        value = values.get(match.group(0), float(match.group(1)))
        return '{value: %.4g%s, source: "%s"}' % (value, match.group(2) or "", match.group(3))
    return FITTED.sub(replace, text)


class Fit:
    def __init__(self, options):
        self.options = options
        self.text = open(options.machine).read()
        self.start = find_constants(self.text)
        self.rows = list(csv.DictReader(open(options.measured)))
        self.folder = tempfile.mkdtemp()
        self.path = os.path.join(self.folder, "machine.yaml")
        self.table = os.path.join(self.folder, "rows.csv")
        with open(self.table, "w", newline="") as file:
            writer = csv.DictWriter(file, self.rows[0].keys())
            writer.writeheader()
            writer.writerows({**row, "machine": self.path} for row in self.rows)

    def is_left_out(self, row):
        return bool(self.options.without) and row["model"].startswith(self.options.without)

    def predict(self, values):
        with open(self.path, "w") as file:
            file.write(put_constants(self.text, values))
        command = [os.path.join(self.options.build, "convoy"), "compare", "--measured", self.table, "--json"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(run.stdout)["rows"]

    def loss(self, values):
        total = 0.0
        try:
            predicted = self.predict(values)
        except subprocess.CalledProcessError:
            return math.inf  # beyond what the format allows, such as more than all of a bandwidth
        for row, said in zip(self.rows, predicted):
            if not self.is_left_out(row) and said["predicted_s"]:
                weight = 1.0 if row.get("class", "regular") == "regular" else 0.3
                total += weight * math.log(said["predicted_s"] / said["measured_s"]) ** 2
        for key, value in values.items():
            total += PRIOR_WEIGHT * (math.log(value / self.start[key]) / PRIOR) ** 2
        return total

    def search(self):
        """One constant at a time, in steps that halve where neither direction is better."""
        values = dict(self.start)
        best = self.loss(values)
        step = {key: 0.16 for key in values}
        for _ in range(self.options.rounds):
            for key in values:
                for sign in (1, -1):
                    moved = False
                    while True:
                        tried = {**values, key: values[key] * math.exp(sign * step[key])}
                        loss = self.loss(tried)
                        if loss >= best - 1e-6:
                            break
                        values, best, moved = tried, loss, True
                    if moved:
                        break
                else:
                    step[key] /= 2
        return values

    def report(self, values):
        sums = {}
        for row, said in zip(self.rows, self.predict(values)):
            kind = row.get("class", "regular")
            group = "left out" if self.is_left_out(row) else "fitted"
            for key in ((group, kind, row.get("family", row["strategy"])), (group, kind, "all"), (group, "all", "all")):
                sums.setdefault(key, []).append(said["accuracy"])
        for key in sorted(sums):
            print("%-10s %-16s %-16s %.3f  %d rows" % (*key, sum(sums[key]) / len(sums[key]), len(sums[key])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine")
    parser.add_argument("measured")
    parser.add_argument("--build", default="build")
    parser.add_argument("--without", help="leave out models whose names begin so")
    parser.add_argument("--write", action="store_true", help="put the constants into the machine file")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    fit = Fit(options)
    values = fit.search() if options.rounds else fit.start
    for key, value in values.items():
        print("%-10.4g %s" % (value, key))
    fit.report(values)
    if options.write:
        with open(options.machine, "w") as file:
            file.write(put_constants(fit.text, values))


if __name__ == "__main__":
    main()
