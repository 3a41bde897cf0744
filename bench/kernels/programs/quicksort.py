class Random:
    def __init__(self, state):
        self.state = state

    def next(self, limit):
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self.state >> 8) % limit


def quicksort(a, low, high):
    if high - low < 1:
        return
    pivot = a[low + (high - low + 1) // 2]
    i, j = low, high
    while i <= j:
        while a[i] < pivot:
            i += 1
        while a[j] > pivot:
            j -= 1
        if i <= j:
            a[i], a[j] = a[j], a[i]
            i += 1
            j -= 1
    quicksort(a, low, j)
    quicksort(a, i, high)


def run(n):
    r = Random(42)
    a = [r.next(1000000) for _ in range(n)]
    quicksort(a, 0, n - 1)
    total = 0
    for i, v in enumerate(a):
        total = (total + (i + 1) * v) % 1000000007
    return total
