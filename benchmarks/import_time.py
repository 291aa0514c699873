"""How long `import` takes beyond NumPy, in a fresh process with warm files; best of five.

python benchmarks/import_time.py
"""

from compare import frameworks, print_table, run

PROGRAM = """
import time, numpy
start = time.perf_counter()
import {name}
print(time.perf_counter() - start)
"""


def main():
    rows = []
    for name in frameworks():
        seconds = min(run(name, "-c", PROGRAM.format(name=name)) for _ in range(5))
        rows.append([name, f"{seconds * 1e3:,.0f} ms"])
    print_table("Import time beyond NumPy.", ["framework", "time"], rows)


if __name__ == "__main__":
    main()
