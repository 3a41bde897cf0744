// The servers of net/http draw how long they wait for their connections at a stop.
//
//go:debug randautoseed=0

package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain has one goroutine run at a time: a life needs no more, and the order of its goroutines is then the same each
// time.
func TestMain(m *testing.M) {
	goruntime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// usually is the plan of a life.
var usually = Plan{Steps: 400, Faults: 12, Checks: 8, Clients: clients, Gap: 40 * time.Second}

// numberOf returns the number in an environment variable, or otherwise if it is empty.
func numberOf(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Whatever clients and people do, and whatever fails, acknowledged changes are there exactly once, and the rest is as
// expected. LIFE_SEED is the first of LIFE_SEEDS seeds; LIFE_STEPS is the number of steps, or a file with the steps
// that a failure left; LIFE_TRACE is a file for the trace of the last life.
func TestLife(t *testing.T) {
	seeds := 8
	if !testing.Short() {
		seeds = 20
	}
	first := numberOf(t, "LIFE_SEED", 1)
	for seed := uint64(first); seed < uint64(first+numberOf(t, "LIFE_SEEDS", seeds)); seed++ {
		liveOne(t, seed)
	}
}

// liveOne lives the life of one seed. If it fails, liveOne writes a file with the steps that the failure needs.
func liveOne(t *testing.T, seed uint64) {
	steps := stepsOf(t, seed)
	res := Live(t, seed, steps, os.Getenv("LIFE_TRACE") != "")
	t.Logf("seed %d: %+v", seed, res.Tally)
	if to := os.Getenv("LIFE_TRACE"); to != "" {
		if err := os.WriteFile(to, []byte(strings.Join(res.Trace, "\n")), 0o600); err != nil {
			t.Error(err)
		}
	}
	if res.Failure == "" {
		return
	}
	again := fmt.Sprintf("LIFE_SEED=%d LIFE_SEEDS=1", seed)
	if small := Shrink(steps, 300, func(rest []Step) bool {
		return Live(t, seed, rest, false).Failure != ""
	}); len(small) < len(steps) {
		again += " LIFE_STEPS=" + writeSteps(t, seed, small)
		res = Live(t, seed, small, false)
	}
	t.Fatalf("seed %d: %s\nto repeat it: %s go test -count 1 -run '^TestLife$' ./test/sim", seed, res.Failure,
		again)
}

// What a request to a model cost counts although the disk is full when the request ends.
func TestFullDiskAsAModelAnswers(t *testing.T) {
	res := Live(t, 1, []Step{{After: time.Second, Kind: Open}, {After: time.Second, Kind: Call, N: [3]int{0, 10, 7}},
		{After: 300 * time.Millisecond, Kind: Full, N: [3]int{30}}, {After: 10 * time.Minute, Kind: Check}}, false)
	if res.Failure != "" || res.Tally.Checks < 2 {
		t.Errorf("%+v, %s", res.Tally, res.Failure)
	}
}

// A day of 10,000 calls with faults ends as expected.
func TestDay(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 calls")
	}
	const steps = 14_000
	plan := Plan{Steps: steps, Faults: 20, Checks: 24, Clients: clients, Gap: 24 * time.Hour / steps}
	seed := uint64(numberOf(t, "LIFE_SEED", 1))
	began := cpu(t)
	res := Live(t, seed, plan.Draw(rand.New(rand.NewPCG(seed, 1))), false)
	t.Logf("seed %d: %+v in %s of processor time", seed, res.Tally, cpu(t)-began)
	if res.Failure != "" || res.Tally.Calls < 10_000 {
		t.Errorf("seed %d: %+v, %s", seed, res.Tally, res.Failure)
	}
}

// cpu returns the processor time that the process has used.
func cpu(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stepsOf returns the steps of a life.
func stepsOf(t *testing.T, seed uint64) []Step {
	plan := usually
	if name := os.Getenv("LIFE_STEPS"); name != "" {
		if n, err := strconv.Atoi(name); err == nil {
			plan.Steps, plan.Faults, plan.Checks = n, plan.Faults*n/plan.Steps, plan.Checks*n/plan.Steps
		} else {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			steps, err := ParseSteps(string(text))
			if err != nil {
				t.Fatal(err)
			}
			return steps
		}
	}
	return plan.Draw(rand.New(rand.NewPCG(seed, 1)))
}

// writeSteps writes the steps of a life to a file that outlives the test, and returns its name.
func writeSteps(t *testing.T, seed uint64, steps []Step) string {
	f, err := os.CreateTemp("", fmt.Sprintf("life-%d-", seed))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range steps {
		fmt.Fprintln(f, s)
	}
	return f.Name()
}
