package runtime

import (
	"strconv"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
)

func TestDelays(t *testing.T) {
	t.Parallel()
	p := agent.BackoffPolicy{BaseSeconds: 2, MaxSeconds: 100}
	for failures, want := range map[int]time.Duration{0: 2, 1: 4, 2: 8, 5: 64, 6: 100, 60: 100} {
		if got := delayOf(failures, p); got != want*time.Second {
			t.Errorf("after %d failures: %v, want %v", failures, got, want*time.Second)
		}
	}
	long := agent.BackoffPolicy{BaseSeconds: 1, MaxSeconds: 1 << 30}
	if got, most := delayOf(40, long), delayOf(16, long); got != most || got != 1<<16*time.Second {
		t.Errorf("after 40 failures: %v, after 16 %v", got, most)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b backoffs
	p := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 30}
	at := time.Unix(1000, 0)
	one, other := backoffKey{Method: turns.Method{Role: "r", Method: "m"}, checked: "sha256:1"},
		backoffKey{Method: turns.Method{Role: "r", Method: "m"}, checked: "sha256:2"}
	foreign := backoffKey{Method: turns.Method{Role: "r", Method: "n"}, checked: "sha256:1"}
	if _, known := b.last(one); known {
		t.Error("a failure is known before there was one")
	}
	failed := lapse{errorType: agent.ErrExecution, message: "boom", owner: "ann"}
	for i, want := range []time.Duration{10, 20, 30, 30} {
		for range 3 { // calls that shared the forge
			if got := b.failed(one, failed, nil, at, p); !got.Equal(at.Add(want * time.Second)) {
				t.Errorf("failure %d delays until %v, want %v", i+1, got, at.Add(want*time.Second))
			}
		}
		if i < 3 {
			at = at.Add(want * time.Second)
		}
	}
	b.failed(other, failed, nil, at, p)
	b.failed(foreign, failed, nil, at, p)
	wait, waiting := b.waiting(one, at.Add(30*time.Second-1))
	if !waiting || wait.errorType != agent.ErrExecution || wait.message != "boom" || wait.failures != 4 {
		t.Errorf("just before the end: %+v, %v", wait, waiting)
	}
	if _, waiting := b.waiting(one, at.Add(30*time.Second)); waiting {
		t.Error("it waits after its delay")
	}
	if last, known := b.last(one); !known || last.failures != 4 {
		t.Errorf("the last failure is %+v, %v", last, known)
	}
	b.clear(one)
	if _, known := b.last(one); known {
		t.Error("a success did not clear the failures")
	}
	if _, known := b.last(other); !known {
		t.Error("the failures of another contract were cleared")
	}
	b.failed(one, failed, nil, at, p)
	b.clearMethod(turns.Method{Role: "r", Method: "m"})
	for k, want := range map[backoffKey]bool{one: false, other: false, foreign: true} {
		if _, known := b.last(k); known != want {
			t.Errorf("%v is known: %v, want %v", k, known, want)
		}
	}
}

// A candidate is held for the length of the delay. At most maxHeld are held: a method beyond that gets no delay.
func TestHeldCandidates(t *testing.T) {
	t.Parallel()
	var b backoffs
	p := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 30}
	at := time.Unix(1000, 0)
	key := func(i int) backoffKey { return backoffKey{Method: turns.Method{Role: "r", Method: strconv.Itoa(i)}} }
	honest := lapse{errorType: "not_found", message: "there is none", owner: "ann"}
	first, second := &candidate{}, &candidate{}
	b.failed(key(0), honest, first, at, p)
	if b.held(key(0), "", at.Add(10*time.Second-1)) != first || b.held(key(0), "", at.Add(10*time.Second)) != nil ||
		b.held(key(1), "", at) != nil {
		t.Error("it is not held for its delay")
	}
	if until := b.failed(key(0), honest, second, at, p); !until.Equal(at.Add(20*time.Second)) ||
		b.held(key(0), "", at) != second {
		t.Errorf("another candidate is held until %v", until)
	}
	b.failed(key(0), lapse{errorType: agent.ErrExecution, message: "boom", owner: "ann"}, nil, at, p)
	if b.held(key(0), "", at) != nil {
		t.Error("one that could not be repaired is held")
	}
	for i := range maxHeld + 1 {
		b.failed(key(i+1), honest, first, at, p)
	}
	if _, waiting := b.waiting(key(maxHeld), at); !waiting {
		t.Error("the last one for which there is room is not held")
	}
	if _, known := b.last(key(maxHeld + 1)); known {
		t.Error("one more is remembered")
	}
	b.failed(key(maxHeld+1), honest, first, at.Add(time.Minute), p)
	if b.held(key(maxHeld+1), "", at.Add(time.Minute)) != first || b.all[key(1)].candidate != nil {
		t.Error("the ones whose delay is over take room")
	}
}

// A candidate whose error is the answer is held after the delay as well, for calls with the contract that it was made
// for, while there is room.
func TestHeldAnswers(t *testing.T) {
	t.Parallel()
	var b backoffs
	p := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 30}
	at, later := time.Unix(1000, 0), time.Unix(100000, 0)
	key := func(i int) backoffKey { return backoffKey{Method: turns.Method{Role: "r", Method: strconv.Itoa(i)}} }
	answer := &candidate{Candidate: proof.Candidate{Generation: agent.Generation{ContractFingerprint: "one"}}}
	answer.answers.Store(true)
	b.failed(key(0), lapse{errorType: agent.ErrWrongToolBoundary}, answer, at, p)
	if b.held(key(0), "two", at) != answer || b.held(key(0), "one", later) != answer ||
		b.held(key(0), "two", later) != nil {
		t.Error("it is not held as the answer of its contract")
	}
	for i := range maxHeld - 2 {
		b.failed(key(i+1), lapse{}, &candidate{}, later, p)
	}
	if b.held(key(0), "one", later) != answer {
		t.Error("it is dropped where there is room")
	}
	b.failed(key(maxHeld-1), lapse{}, &candidate{}, later, p)
	b.failed(key(maxHeld), lapse{}, &candidate{}, later, p)
	if b.held(key(0), "one", later) != nil || b.held(key(maxHeld), "", later) == nil {
		t.Error("it takes the room of one that has a delay")
	}
}

// Memory is bounded: of too many methods the ones whose delay is over go first, and new ones are not remembered while
// there is no room.
func TestBackoffsAreBounded(t *testing.T) {
	t.Parallel()
	var b backoffs
	p := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 30}
	at := time.Unix(1000, 0)
	key := func(i int) backoffKey { return backoffKey{Method: turns.Method{Role: "r", Method: strconv.Itoa(i)}} }
	failed := lapse{errorType: agent.ErrExecution, message: "boom", owner: "ann"}
	for i := range maxBackoffs {
		b.failed(key(i), failed, nil, at.Add(time.Duration(i%2)*time.Second), p)
	}
	full := at.Add(10 * time.Second)
	b.failed(key(maxBackoffs), failed, nil, full, p)
	if _, known := b.last(key(maxBackoffs)); known || len(b.all) != maxBackoffs {
		t.Errorf("%d methods are remembered, the newest: %v", len(b.all), known)
	}
	if again := b.failed(key(0), failed, nil, full, p); !again.Equal(full.Add(20 * time.Second)) {
		t.Errorf("a known method is delayed until %v", again)
	}
	b.failed(key(maxBackoffs), failed, nil, full.Add(1), p)
	if _, known := b.last(key(2)); known {
		t.Error("a method whose delay is over is remembered")
	}
	for _, i := range []int{0, 1, maxBackoffs} {
		if _, known := b.last(key(i)); !known {
			t.Errorf("method %d is forgotten", i)
		}
	}
}

// Patches cause no delay for one round of repairs and one regeneration; then each delays the next. A program that
// lasted begins a new row.
func TestPatchesBackOff(t *testing.T) {
	t.Parallel()
	var b backoffs
	p := agent.DefaultPolicy()
	at := time.Unix(1000, 0)
	k := backoffKey{Method: turns.Method{Role: "r", Method: "m"}, checked: "none"}
	for i, want := range []time.Duration{0, 0, 0, 0, 30, 60, 120} {
		b.patched(k, lapse{errorType: agent.ErrExecution}, false, at, &p)
		wait, waiting := b.waiting(k, at)
		if waiting != (want > 0) || waiting && (!wait.until.Equal(at.Add(want*time.Second)) ||
			wait.errorType != agent.ErrExecution) {
			t.Errorf("patch %d: %v until %v, want %v", i+1, waiting, wait.until, want*time.Second)
		}
	}
	b.patched(k, lapse{errorType: agent.ErrExecution}, true, at, &p)
	if _, waiting := b.waiting(k, at); waiting {
		t.Error("the successor of a program that lasted waits")
	}
	b.failed(k, lapse{errorType: agent.ErrExecution, message: "boom", owner: "ann"}, nil, at, p.Backoff)
	b.patched(k, lapse{errorType: agent.ErrExecution}, false, at, &p)
	if f, _ := b.last(k); f.failures != 0 || f.patches != 2 {
		t.Errorf("a patch leaves %d failures, and is number %d of its row", f.failures, f.patches)
	}
	b.clear(k)
	if _, known := b.last(k); known {
		t.Error("a success leaves the row")
	}
}
