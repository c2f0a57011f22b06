#!/usr/bin/env python3
"""How many containers of a dumped batch can be placed at all: an upper bound by CP-SAT.

    pip install ortools==9.15.6755
    for seed in $(seq 1 10); do
        edgeloom sim batch --profiles ecsched-dp --seed-base $seed --dump $seed.json
    done
    most_placed.py [--seconds 60] [--workers 2] 1.json ... > ../tests/data/most_placed.json

Every machine takes what fits it in all resources, every container one machine of those that an arc leads to. A bound
holds whether or not the search came to its end within its time; `placed` is what the search itself found, and `demand`
what is asked for in all, by which the instance is known again.
"""

import argparse
import json
import sys

import ortools
from ortools.sat.python import cp_model


def bound(dump, limits):
    """Most containers, as found and as proved."""
    model = cp_model.CpModel()
    on = {(unit, machine): model.new_bool_var("") for unit, machine, _ in dump["arcs"]}
    of_unit = [[] for _ in dump["demand"]]
    of_machine = [[] for _ in dump["availability"]]
    for (unit, machine), placed in on.items():
        of_unit[unit].append(placed)
        of_machine[machine].append((unit, placed))
    for ways in of_unit:
        model.add_at_most_one(ways)
    for machine, free in enumerate(dump["availability"]):
        for resource, most in enumerate(free):
            wanted = [dump["demand"][unit][resource] * placed for unit, placed in of_machine[machine]]
            model.add(sum(wanted) <= most)
    model.maximize(sum(dump["members"][unit] * placed for (unit, _), placed in on.items()))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limits.seconds
    solver.parameters.num_workers = limits.workers
    solver.parameters.random_seed = 1
    solver.solve(model)
    return round(solver.objective_value), int(solver.best_objective_bound + 1e-6)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("dumps", nargs="+")
    limits = arguments.parse_args()
    bounds = []
    for path in limits.dumps:
        with open(path, encoding="utf-8") as file:
            dump = json.load(file)
        placed, most = bound(dump, limits)
        print(f"{path}: {placed} placed, no more than {most}", file=sys.stderr, flush=True)
        demand = [sum(amounts) for amounts in zip(*dump["demand"])]
        bounds.append({"demand": demand, "placed": placed, "most": most})
    found = {"solver": f"OR-tools {ortools.__version__} CP-SAT", "seconds": limits.seconds}
    found |= {"workers": limits.workers, "bounds": bounds}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
