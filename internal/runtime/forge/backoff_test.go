package forge

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
		if got := DelayOf(failures, p); got != want*time.Second {
			t.Errorf("after %d failures: %v, want %v", failures, got, want*time.Second)
		}
	}
	long := agent.BackoffPolicy{BaseSeconds: 1, MaxSeconds: 1 << 30}
	if got, most := DelayOf(40, long), DelayOf(16, long); got != most || got != 1<<16*time.Second {
		t.Errorf("after 40 failures: %v, after 16 %v", got, most)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b Backoffs
	p := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 30}
	at := time.Unix(1000, 0)
	one, other := BackoffKey{Method: turns.Method{Role: "r", Method: "m"}, Checked: "sha256:1"},
		BackoffKey{Method: turns.Method{Role: "r", Method: "m"}, Checked: "sha256:2"}
	foreign := BackoffKey{Method: turns.Method{Role: "r", Method: "n"}, Checked: "sha256:1"}
	if _, known := b.last(one); known {
		t.Error("a failure is known before there was one")
	}
	failed := Lapse{ErrorType: agent.ErrExecution, Message: "boom", Owner: "ann"}
	for i, want := range []time.Duration{10, 20, 30, 30} {
		for range 3 { // calls that shared the forge
			if got := b.Failed(one, failed, nil, at, p); !got.Equal(at.Add(want * time.Second)) {
				t.Errorf("failure %d delays until %v, want %v", i+1, got, at.Add(want*time.Second))
			}
		}
		if i < 3 {
			at = at.Add(want * time.Second)
		}
	}
	b.Failed(other, failed, nil, at, p)
	b.Failed(foreign, failed, nil, at, p)
	wait, waiting := b.Waiting(one, at.Add(30*time.Second-1))
	if !waiting || wait.ErrorType != agent.ErrExecution || wait.Message != "boom" || wait.Failures != 4 {
		t.Errorf("just before the end: %+v, %v", wait, waiting)
	}
	if _, waiting := b.Waiting(one, at.Add(30*time.Second)); waiting {
		t.Error("it waits after its delay")
	}
	if last, known := b.last(one); !known || last.Failures != 4 {
		t.Errorf("the last failure is %+v, %v", last, known)
	}
	b.Clear(one)
	if _, known := b.last(one); known {
		t.Error("a success did not clear the failures")
	}
	if _, known := b.last(other); !known {
		t.Error("the failures of another contract were cleared")
	}
	b.Failed(one, failed, nil, at, p)
	b.ClearMethod(turns.Method{Role: "r", Method: "m"})
	for k, want := range map[BackoffKey]bool{one: false, other: false, foreign: true} {
		if _, known := b.last(k); known != want {
			t.Errorf("%v is known: %v, want %v", k, known, want)
		}
	}
}

// A candidate is held for the length of the delay. At most maxHeld are held: a method beyond that gets no delay.
func TestHeldCandidates(t *testing.T) {
	t.Parallel()
	var b Backoffs
	p := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 30}
	at := time.Unix(1000, 0)
	key := func(i int) BackoffKey { return BackoffKey{Method: turns.Method{Role: "r", Method: strconv.Itoa(i)}} }
	honest := Lapse{ErrorType: "not_found", Message: "there is none", Owner: "ann"}
	first, second := &Candidate{}, &Candidate{}
	b.Failed(key(0), honest, first, at, p)
	if b.Held(key(0), "", at.Add(10*time.Second-1)) != first || b.Held(key(0), "", at.Add(10*time.Second)) != nil ||
		b.Held(key(1), "", at) != nil {
		t.Error("it is not held for its delay")
	}
	if until := b.Failed(key(0), honest, second, at, p); !until.Equal(at.Add(20*time.Second)) ||
		b.Held(key(0), "", at) != second {
		t.Errorf("another candidate is held until %v", until)
	}
	b.Failed(key(0), Lapse{ErrorType: agent.ErrExecution, Message: "boom", Owner: "ann"}, nil, at, p)
	if b.Held(key(0), "", at) != nil {
		t.Error("one that could not be repaired is held")
	}
	for i := range maxHeld + 1 {
		b.Failed(key(i+1), honest, first, at, p)
	}
	if _, waiting := b.Waiting(key(maxHeld), at); !waiting {
		t.Error("the last one for which there is room is not held")
	}
	if _, known := b.last(key(maxHeld + 1)); known {
		t.Error("one more is remembered")
	}
	b.Failed(key(maxHeld+1), honest, first, at.Add(time.Minute), p)
	if b.Held(key(maxHeld+1), "", at.Add(time.Minute)) != first || b.all[key(1)].Candidate != nil {
		t.Error("the ones whose delay is over take room")
	}
}

// A candidate whose error is the answer is held after the delay as well, for calls with the contract that it was made
// for, while there is room.
func TestHeldAnswers(t *testing.T) {
	t.Parallel()
	var b Backoffs
	p := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 30}
	at, later := time.Unix(1000, 0), time.Unix(100000, 0)
	key := func(i int) BackoffKey { return BackoffKey{Method: turns.Method{Role: "r", Method: strconv.Itoa(i)}} }
	answer := &Candidate{Candidate: proof.New(agent.Generation{ContractFingerprint: "one"}, nil)}
	answer.Answers.Store(true)
	b.Failed(key(0), Lapse{ErrorType: agent.ErrWrongToolBoundary}, answer, at, p)
	if b.Held(key(0), "two", at) != answer || b.Held(key(0), "one", later) != answer ||
		b.Held(key(0), "two", later) != nil {
		t.Error("it is not held as the answer of its contract")
	}
	for i := range maxHeld - 2 {
		b.Failed(key(i+1), Lapse{}, &Candidate{}, later, p)
	}
	if b.Held(key(0), "one", later) != answer {
		t.Error("it is dropped where there is room")
	}
	b.Failed(key(maxHeld-1), Lapse{}, &Candidate{}, later, p)
	b.Failed(key(maxHeld), Lapse{}, &Candidate{}, later, p)
	if b.Held(key(0), "one", later) != nil || b.Held(key(maxHeld), "", later) == nil {
		t.Error("it takes the room of one that has a delay")
	}
}

// Memory is bounded: of too many methods the ones whose delay is over go first, and new ones are not remembered while
// there is no room.
func TestBackoffsAreBounded(t *testing.T) {
	t.Parallel()
	var b Backoffs
	p := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 30}
	at := time.Unix(1000, 0)
	key := func(i int) BackoffKey { return BackoffKey{Method: turns.Method{Role: "r", Method: strconv.Itoa(i)}} }
	failed := Lapse{ErrorType: agent.ErrExecution, Message: "boom", Owner: "ann"}
	for i := range maxBackoffs {
		b.Failed(key(i), failed, nil, at.Add(time.Duration(i%2)*time.Second), p)
	}
	full := at.Add(10 * time.Second)
	b.Failed(key(maxBackoffs), failed, nil, full, p)
	if _, known := b.last(key(maxBackoffs)); known || len(b.all) != maxBackoffs {
		t.Errorf("%d methods are remembered, the newest: %v", len(b.all), known)
	}
	if again := b.Failed(key(0), failed, nil, full, p); !again.Equal(full.Add(20 * time.Second)) {
		t.Errorf("a known method is delayed until %v", again)
	}
	b.Failed(key(maxBackoffs), failed, nil, full.Add(1), p)
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
	var b Backoffs
	p := agent.DefaultPolicy()
	at := time.Unix(1000, 0)
	k := BackoffKey{Method: turns.Method{Role: "r", Method: "m"}, Checked: "none"}
	for i, want := range []time.Duration{0, 0, 0, 0, 30, 60, 120} {
		b.Patched(k, Lapse{ErrorType: agent.ErrExecution}, false, at, &p)
		wait, waiting := b.Waiting(k, at)
		if waiting != (want > 0) || waiting && (!wait.Until.Equal(at.Add(want*time.Second)) ||
			wait.ErrorType != agent.ErrExecution) {
			t.Errorf("patch %d: %v until %v, want %v", i+1, waiting, wait.Until, want*time.Second)
		}
	}
	b.Patched(k, Lapse{ErrorType: agent.ErrExecution}, true, at, &p)
	if _, waiting := b.Waiting(k, at); waiting {
		t.Error("the successor of a program that lasted waits")
	}
	b.Failed(k, Lapse{ErrorType: agent.ErrExecution, Message: "boom", Owner: "ann"}, nil, at, p.Backoff)
	b.Patched(k, Lapse{ErrorType: agent.ErrExecution}, false, at, &p)
	if f, _ := b.last(k); f.Failures != 0 || f.patches != 2 {
		t.Errorf("a patch leaves %d failures, and is number %d of its row", f.Failures, f.patches)
	}
	b.Clear(k)
	if _, known := b.last(k); known {
		t.Error("a success leaves the row")
	}
}
