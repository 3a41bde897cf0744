import heapq


class Random:
    def __init__(self, state):
        self.state = state

    def next(self, limit):
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self.state >> 8) % limit


class Task:
    def __init__(self, priority, name):
        self.priority, self.name = priority, name

    def __lt__(self, other):
        return self.priority < other.priority


def run(n):
    r = Random(99)
    q = []
    for i in range(n):
        heapq.heappush(q, Task(r.next(1 << 20) * 1024 + i % 1024, "task"))
    total, last, i = 0, -1, 1
    while q:
        t = heapq.heappop(q)
        if t.priority < last:
            raise ValueError("out of order")
        last = t.priority
        total = (total + i * t.priority + len(t.name)) % 1000000007
        i += 1
    return total
