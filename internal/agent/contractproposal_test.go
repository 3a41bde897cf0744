package agent

import (
	"fmt"
	"testing"
)

// A role has at most one proposal per owner, and a bounded number of open and rejected ones. Values never change in
// place.
func TestProposals(t *testing.T) {
	t.Parallel()
	var none *Proposals
	if none.Find("a") != nil || none.Of("ann") != nil || none.Known("1") || none.Reject("a") != nil ||
		none.Keep(func(*ContractProposal) bool { return true }) != nil {
		t.Error("no proposals have some")
	}
	one, ok := none.Add(ContractProposal{ID: "a", Checked: "1", Owner: "ann"})
	if !ok || none != nil || one.Of("ann").ID != "a" || one.Find("a") == nil || !one.Known("1") || one.Known("2") {
		t.Errorf("one is %+v, %v", one, ok)
	}
	two, ok := one.Add(ContractProposal{ID: "b", Checked: "2", Owner: "ann"})
	if !ok || len(two.Open) != 1 || two.Of("ann").ID != "b" || one.Of("ann").ID != "a" {
		t.Errorf("ann's second is %+v after %+v", two, one)
	}
	all := two
	for i := range maxProposals - 1 {
		if all, ok = all.Add(ContractProposal{ID: fmt.Sprint(i), Owner: fmt.Sprint(i)}); !ok {
			t.Fatalf("%d are too many", i)
		}
	}
	if more, ok := all.Add(ContractProposal{ID: "c", Owner: "ben"}); ok || more != all || more.Of("ben") != nil {
		t.Errorf("one too many: %v, %+v", ok, more)
	}
	if again, ok := all.Add(ContractProposal{ID: "c",
		Owner: "ann"}); !ok || again.Of("ann").ID != "c" || len(again.Open) != maxProposals {
		t.Errorf("another of ann's: %v, %+v", ok, again)
	}
	rejected := all
	for i := range maxRejected + 3 {
		rejected, _ = rejected.Keep(func(o *ContractProposal) bool { return o.Owner == "0" }).Add(
			ContractProposal{ID: "r", Checked: fmt.Sprint("r", i), Owner: "eve"})
		if rejected = rejected.Reject("r"); !rejected.Known(fmt.Sprint("r", i)) || rejected.Find("r") != nil {
			t.Fatalf("after %d rejections: %+v", i+1, rejected)
		}
	}
	if len(rejected.Rejected) != maxRejected || rejected.Known("r2") || !rejected.Known("r3") ||
		len(rejected.Open) != 1 {
		t.Errorf("%d rejected ones are kept, %d wait", len(rejected.Rejected), len(rejected.Open))
	}
	if len(all.Rejected) != 0 || len(all.Open) != maxProposals {
		t.Errorf("a version has changed: %+v", all)
	}
}
