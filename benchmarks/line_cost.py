"""What it costs that every record knows the line of the program that made it: chain_100 with and without, in turns.

python benchmarks/line_cost.py
"""

from compare import best_seconds, build_step, microseconds, print_table

import tapeflow


def main():
    step = build_step("tapeflow", "chain_100")
    seconds = {True: [], False: []}
    try:
        for _ in range(10):
            for recorded, measured in seconds.items():
                tapeflow._core.set_record_locations(recorded)
                measured.append(best_seconds(step))
    finally:
        tapeflow._core.set_record_locations(True)
    on, off = min(seconds[True]), min(seconds[False])
    rows = [["without", microseconds(off), ""], ["with", microseconds(on), f"{on / off - 1:+.1%}"]]
    print_table("Recording source lines, one step of chain_100.", ["lines", "time", "cost"], rows)


if __name__ == "__main__":
    main()
