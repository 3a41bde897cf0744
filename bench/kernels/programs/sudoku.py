PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"


class Board:
    def __init__(self):
        self.cells = [[0] * 9 for _ in range(9)]
        self.tries = 0

    def fits(self, row, col, digit):
        for i in range(9):
            if self.cells[row][i] == digit or self.cells[i][col] == digit or self.cells[row // 3 * 3 + i // 3][col // 3 * 3 + i % 3] == digit:
                return False
        return True

    def solve(self):
        for row in range(9):
            for col in range(9):
                if self.cells[row][col] != 0:
                    continue
                for digit in range(1, 10):
                    self.tries += 1
                    if self.fits(row, col, digit):
                        self.cells[row][col] = digit
                        if self.solve():
                            return True
                        self.cells[row][col] = 0
                return False
        return True


def run(n):
    out = ""
    tries = 0
    for _ in range(n):
        b = Board()
        for k, c in enumerate(PUZZLE):
            if c != ".":
                b.cells[k // 9][k % 9] = ord(c) - ord("0")
        b.solve()
        tries += b.tries
        out = "".join(chr(ord("0") + d) for row in b.cells for d in row)
    return [out, tries]
