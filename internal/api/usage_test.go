package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
)

func (f *fake) Usage(_ context.Context, q spend.UsageQuery) (spend.UsageReport, error) {
	f.usage = q
	return spend.UsageReport{Currency: "USD", Data: []spend.UsageRow{{Key: "alice", Calls: 1}},
			Limits: []spend.Limit{{Scope: spend.ScopeNamespace, Window: spend.WindowDay, Limit: 10, ResetsAt: at}}},
		f.note("Usage")
}

func (f *fake) Nearly(owner, _, _ string, daemon bool) (float64, bool) {
	if daemon {
		return f.spent, f.spent >= 0.8
	}
	return 0, false
}

func (f *fake) ListStored(_ context.Context, after string, limit int) ([]store.OwnerBytes, error) {
	return store.PageStored(slices.Clone(f.stored), after, limit), f.note("ListStored")
}

func (f *fake) Stored(_ context.Context, owner string) (store.OwnerBytes, error) {
	return store.OwnerBytes{Owner: owner, Bytes: store.Bytes{Tools: 7}}, f.note("Stored")
}

// Operators get the storage of each owner, in pages. Other callers get their own.
func TestStoredIsListed(t *testing.T) {
	t.Parallel()
	tokens, err := access.ParseTokens([]byte(
		"ann 0123456789abcdef scopes=read\nop fedcba9876543210 scopes=read,operate"))
	if err != nil {
		t.Fatal(err)
	}
	g := newRig(t, func(o *Options) { o.Auth = tokens })
	for i := range maxLimit + 2 {
		g.fake.stored = append(g.fake.stored, store.OwnerBytes{Owner: fmt.Sprintf("o%04d", i),
			Bytes: store.Bytes{Files: int64(i)}})
	}
	see := func(token, after string) (report spend.UsageReport) {
		got := g.ask("GET", "/v1/usage?storage_after="+after, "", "Authorization: Bearer "+token)
		if err := json.Unmarshal([]byte(got.body), &report); err != nil || got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return report
	}
	if r := see("0123456789abcdef", ""); len(r.Storage) != 1 ||
		r.Storage[0] != (store.OwnerBytes{Owner: "ann", Bytes: store.Bytes{Tools: 7}}) || r.StorageNext != nil {
		t.Errorf("ann sees %v", r.Storage)
	}
	first := see("fedcba9876543210", "")
	if len(first.Storage) != maxLimit || first.StorageNext == nil {
		t.Fatalf("op sees %d rows", len(first.Storage))
	}
	if r := see("fedcba9876543210", *first.StorageNext); !slices.Equal(append(first.Storage, r.Storage...),
		g.fake.stored) || r.StorageNext != nil {
		t.Errorf("then %v, %v", r.Storage, r.StorageNext)
	}
}

func TestUsageRoute(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, c := range []struct {
		path   string
		status int
	}{
		{"/v1/usage", 200},
		{"/v1/usage?by=owner&since=2026-11-01T00:00:00Z&until=2026-11-30T00:00:00Z", 200},
		{"/v1/usage?by=model", 400},
		{"/v1/usage?since=yesterday", 400},
		{"/v1/usage?since=2026-11-02T00:00:00Z&until=2026-11-01T00:00:00Z", 400},
		{"/v1/usage?limit=3&after=6", 200},
		{"/v1/usage?limit=0", 400},
		{"/v1/usage?after=add", 400},
	} {
		if got := g.ask("GET", c.path, ""); got.status != c.status {
			t.Errorf("%s: %d %s", c.path, got.status, got.body)
		}
	}
	if g.ask("GET", "/v1/usage?by=method&limit=3&after=6",
		""); g.fake.usage.By != "method" || g.fake.usage.Limit != 3 || g.fake.usage.After != 6 ||
		g.fake.usage.Owner != nil || !g.fake.usage.Daemon {
		t.Errorf("without tokens: %+v", g.fake.usage)
	}
	for scopes, all := range map[string]bool{"read": false, "read,call": false, "read,operate": true,
		"read,admin": false} {
		tokens, err := access.ParseTokens([]byte("ann 0123456789abcdef scopes=" + scopes))
		if err != nil {
			t.Fatal(err)
		}
		g := newRig(t, func(o *Options) { o.Auth = tokens })
		g.ask("GET", "/v1/usage", "", "Authorization: Bearer 0123456789abcdef")
		q := g.fake.usage
		if (q.Owner == nil) != all || !all && *q.Owner != "ann" || q.Daemon != (scopes == "read,admin") {
			t.Errorf("%s: %+v", scopes, q)
		}
	}
}

// Replies of calls and predictions show the used share of a cap, from 80 percent on.
func TestSpendHeader(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, c := range []struct {
		spent float64
		want  string
	}{{0.5, ""}, {0.8, "0.80"}, {0.834, "0.83"}, {1.8, "1.80"}} {
		g.fake.spent = c.spent
		for path, body := range map[string]string{"/v1/sessions/" + knownSession + "/calls": `{"method":"m"}`,
			"/v1/predict": `{"signature":{"inputs":[{"name":"q"}],"outputs":[{"name":"a"}]},"inputs":{"q":"x"}}`} {
			if got := g.ask("POST", path, body); got.status != 200 || got.header.Get("Recurgent-Spend") != c.want {
				t.Errorf("%s at %v: %d, %q %s", path, c.spent, got.status, got.header.Get("Recurgent-Spend"), got.body)
			}
		}
	}
	tokens, err := access.ParseTokens([]byte("ann 0123456789abcdef scopes=call"))
	if err != nil {
		t.Fatal(err)
	}
	g = newRig(t, func(o *Options) { o.Auth = tokens })
	g.fake.spent = 0.9 // of the daemon's cap, which only admins may see
	if got := g.ask("POST", "/v1/sessions/"+knownSession+"/calls", `{"method":"m"}`,
		"Authorization: Bearer 0123456789abcdef"); got.status != 200 || got.header.Get("Recurgent-Spend") != "" {
		t.Errorf("without admin: %d, %q %s", got.status, got.header.Get("Recurgent-Spend"), got.body)
	}
}

// A prediction over a cap is a 429 with the figures of the cap.
func TestPredictionOverCap(t *testing.T) {
	t.Parallel()
	p := problemOf(&predict.Failure{Code: codeBudget, Detail: "d",
		Over: &spend.Limit{Scope: "owner", Window: "day", Limit: 10, Used: 9, ResetsAt: time.Now().Add(time.Hour)}})
	if p.Status != http.StatusTooManyRequests || p.Meta["limit"] != int64(10) || p.Meta["used"] != int64(9) ||
		p.Meta["resets_at"] == nil || p.retry == "" {
		t.Errorf("got %+v", p)
	}
}
