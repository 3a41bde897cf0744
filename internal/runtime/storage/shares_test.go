package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// sums is a store that implements Stored only.
type sums struct {
	store.Namespace
	held store.Stored
	err  error
}

func (s *sums) Stored(context.Context, string) (store.Stored, error) { return s.held, s.err }

type rig struct {
	*Shares
	sums
	policy  agent.Policy
	refused []string
}

func newRig(t *testing.T, several bool, most store.Bytes) *rig {
	t.Helper()
	r := &rig{policy: agent.DefaultPolicy()}
	var err error
	r.Shares, err = New(Options{Store: &r.sums, Policy: func() *agent.Policy { return &r.policy }, Most: most,
		Several:   several,
		OnRefusal: func(kind string) { r.refused = append(r.refused, kind) }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each kind has its own bounds for the owner and for the namespace. Whatever exceeds a bound is rejected and counted.
func TestBounds(t *testing.T) {
	t.Parallel()
	of := func(n int64) store.Bytes { return store.Bytes{Histories: n} }
	for name, c := range map[string]struct {
		several bool
		share   float64
		held    store.Stored
		most    int64 // of histories that fit beside held
		full    string
		limit   int64
	}{
		"without tokens": {held: store.Stored{Own: of(100), All: of(100)}, most: 900, full: ShareOwner,
			limit: 1000},
		"without tokens, a policy": {share: 0.25, held: store.Stored{Own: of(100), All: of(100)}, most: 150,
			full: ShareOwner, limit: 250},
		"half": {several: true, held: store.Stored{Own: of(100), All: of(100)}, most: 400,
			full: ShareOwner, limit: 500},
		"a policy": {several: true, share: 0.1, held: store.Stored{Own: of(10), All: of(100)}, most: 90,
			full: ShareOwner, limit: 100},
		"a namespace": {several: true, held: store.Stored{Own: of(100), All: of(600)}, most: 150,
			full: ShareNamespace, limit: 750},
		"a namespace of several": {several: true, held: store.Stored{Own: of(100), All: of(200), Others: of(600)},
			most: 100, full: ShareNamespace, limit: 200},
		"above its share": {several: true, held: store.Stored{Own: of(700), All: of(700)}, most: 0,
			full: ShareOwner, limit: 500},
		"others above all": {several: true, held: store.Stored{Own: of(1), All: of(1), Others: of(2000)},
			most: 0, full: ShareNamespace, limit: 1},
	} {
		r := newRig(t, c.several, store.Bytes{Histories: 1000, Values: 1})
		r.held, r.policy.Storage.OwnerShare = c.held, c.share
		if c.most > 0 {
			if err := r.Room(t.Context(), "ann", of(c.most)); err != nil {
				t.Errorf("%s: %d: %v", name, c.most, err)
			}
		}
		var full *FullError
		if err := r.Room(t.Context(), "ann", of(c.most+1)); !errors.As(err, &full) ||
			*full != (FullError{Of: store.KindHistories, Share: c.full, Owner: "ann", Used: full.Used,
				Limit: c.limit}) {
			t.Errorf("%s: got %+v", name, err)
		}
		if r.Fits(t.Context(), "ann", of(c.most+1)) || len(r.refused) != 1 || r.refused[0] != store.KindHistories {
			t.Errorf("%s: it fits, or counted %v", name, r.refused)
		}
		if !r.Fits(t.Context(), "ann", store.Bytes{Files: 1 << 40, Histories: -1}) {
			t.Errorf("%s: refused what has no bound, or what does not grow", name)
		}
	}
}

// However much others store, a namespace with nothing finds room, and its numbers never reveal how much others store.
func TestNamespacesLeaveRoom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		most := 1<<20 + random.Int64N(1<<40)
		var taken int64 // by the namespaces before
		for range 1 + random.IntN(10) {
			r := newRig(t, true, store.Bytes{Files: most})
			r.held.Others.Files = taken
			bounds, err := r.Bounds(t.Context(), "ann", store.KindFiles)
			if err != nil || len(bounds) != 3 {
				t.Fatal(bounds, err)
			}
			if left := most - taken; bounds[1].Limit > left*3/4 || bounds[1].Limit < left/2 {
				t.Fatalf("of %d free a namespace may take %d", left, bounds[1].Limit)
			}
			if shown := bounds[2].Full("ann",
				store.KindFiles); bounds[2].Used != taken || shown.Used != 0 || shown.Limit != 0 {
				t.Fatalf("what others have is shown: %+v", shown)
			}
			if shown := bounds[1].Full("ann", store.KindFiles).Limit; taken > 0 && shown != bounds[1].Used {
				t.Fatalf("the limit shown is %d, of %d used", shown, bounds[1].Used)
			}
			taken += bounds[1].Limit
		}
		if taken >= most {
			t.Fatalf("%d of %d are taken", taken, most)
		}
	}
}

// The kinds' bounds are parts of what there is.
func TestSplit(t *testing.T) {
	t.Parallel()
	for _, all := range []int64{1 << 20, 100 << 30, 1 << 50} {
		s := Split(all, 7)
		sum := int64(0)
		for _, kind := range store.Kinds() {
			if s.Of(kind) <= 0 {
				t.Errorf("%s has no bound", kind)
			}
			sum += s.Of(kind)
		}
		if s.Files != 7 || sum-7 > all {
			t.Errorf("%+v of %d", s, all)
		}
	}
}

// A failing store is not a full share; nil Shares have no bounds.
func TestRoomOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, false, store.Bytes{Values: 1})
	r.err = errors.New("broken")
	if err := r.Room(t.Context(), "ann", store.Bytes{Values: 1}); !errors.Is(err, r.err) {
		t.Errorf("got %v", err)
	}
	var none *Shares
	bounds, err := none.Bounds(t.Context(), "ann", store.KindFiles)
	if none.Room(t.Context(), "ann", store.Bytes{Values: 1 << 60}) != nil || len(bounds) != 0 || err != nil ||
		none.OwnerShare(&r.policy) != 1 {
		t.Error("no shares have bounds")
	}
}

// The error names the full share and kind, and how to make room, with the owner whose data it must be.
func TestFullError(t *testing.T) {
	t.Parallel()
	for _, kind := range store.Kinds() {
		for _, share := range []string{ShareOwner, ShareNamespace, ShareDaemon, ShareDisk} {
			e := &FullError{Of: kind, Share: share, Owner: "ann", Used: 5, Limit: 7}
			o := e.Outcome()
			if (share == ShareOwner) != strings.Contains(e.Hint(), "of ann") || share != ShareDisk &&
				!strings.Contains(e.Error(), kind) || !strings.Contains(o.ErrorMessage, e.Hint()) {
				t.Errorf("%s of %s: %s", kind, share, o.ErrorMessage)
			}
			if want := fmt.Sprint(map[string]any{"share": share, "used": int64(5), "limit": int64(7),
				"of": kind}); fmt.Sprint(o.Metadata) != want || o.Retriable || !IsFull(&o) {
				t.Errorf("%s of %s: %+v", kind, share, o)
			}
		}
	}
	other := agent.Failed(agent.ErrResourceExhausted, "the budget of nested calls is used up")
	if IsFull(&other) {
		t.Error("another outcome is one for want of room")
	}
}
