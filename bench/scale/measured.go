package main

// measured are the figures of one machine with two processors that others used as well. Begin, Each, Wait are from
// BenchmarkCommit beside this file: transactions of 2 and of 16 calls took the primary 1.6 and 3.6 ms of processor time, and one
// of 2 calls 9.9 ms in all, with disk and standby on the same machine. Run is a warm call's time and Forward twice that of any
// request, as docs/performance.md has them.
func measured() Parameters {
	return Parameters{Run: 0.6, Forward: 0.4, Begin: 1.3, Each: 0.15, Wait: 8.3, Cores: 4, DatabaseCores: 16, Clients: 64}
}
