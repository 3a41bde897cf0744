package main

// measured returns the figures of an otherwise idle machine with two processors. Begin, Each and Wait come from
// BenchmarkCommit in this directory: a transaction of one call took the primary 0.57 ms of processor time, one of 64
// calls 0.094 ms per call. A single call was committed 1.11 ms after it was sent, with replica, primary, disk and
// standby on one machine, so the figure includes no network. Run is the time of a warm call and Forward twice that of
// any request, both from docs/performance.md.
func measured() Parameters {
	return Parameters{Run: 0.6, Forward: 0.4, Begin: 0.48, Each: 0.086, Wait: 0.55, Cores: 4, DatabaseCores: 16,
		Clients: 64}
}
