package disk

import (
	"context"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

var update = flag.Bool("update", false, "write what the data directories hold to their golden files")

// TestDirectoriesOfEarlierVersions opens data directories of earlier releases, stopped and killed, and compares the
// content with what the release that wrote them read. Each release that changes a file's schema adds a directory here.
// Existing ones are never changed.
func TestDirectoriesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	const root = "testdata/directories"
	for _, name := range []string{"v1-stopped", "v1-killed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, source := t.TempDir(), filepath.Join(root, name)
			if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			o := testOptions(t)
			o.Flush = -1
			o.Now = func() time.Time { return time.Date(2026, 11, 22, 3, 30, 0, 0, time.UTC) }
			s := open(t, dir, o)
			got := everything(t, s, source)
			golden := source + ".golden.json"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s: %s", name, storetest.Difference(got, string(want)))
			}
			if n := s.Stats().Quarantined; n != 0 {
				t.Errorf("%d files were moved aside", n)
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			if r, err := Verify(t.Context(), dir, o); err != nil || len(r.Problems) > 0 {
				t.Errorf("after a clean stop: %v, %v", r.Problems, err)
			}
			if again := everything(t, open(t, dir, o), source); again != got {
				t.Errorf("opened a second time: %s", storetest.Difference(again, got))
			}
		})
	}
}

var (
	contentRefs = regexp.MustCompile(`"ref": "([^"]+)"`)
	programSums = regexp.MustCompile(`"code_checksum":"(sha256:[0-9a-f]{64})"`)
)

// everything renders all readable data of a store. The results that it requests are those in content.json of source.
func everything(t *testing.T, s *testStore, source string) string {
	t.Helper()
	ctx := context.Background()
	out := map[string]any{}
	put := func(name string, value any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = value
	}
	policy, _, err := s.Policy(ctx)
	put("policy", policy, err)
	audit, err := s.Audit(ctx, store.AuditQuery{Limit: 1000})
	put("audit", audit, err)
	put("states", s.Stats().Artifacts, nil)
	tools, err := s.ListTools(ctx, "", 1000)
	put("tools", tools, err)
	for _, tool := range tools {
		artifacts, err := s.ListArtifacts(ctx, tool.Role)
		put("artifacts of "+tool.Role, artifacts, err)
		patterns, err := s.Patterns(ctx, tool.Role)
		put("patterns of "+tool.Role, patterns, err)
		text, err := json.Marshal(artifacts)
		put("artifacts of "+tool.Role, json.RawMessage(text), err)
		for _, sum := range programSums.FindAllStringSubmatch(string(text), -1) {
			code, err := s.Program(ctx, sum[1])
			put("program "+sum[1], code, err)
		}
	}
	spent, err := s.Spent(ctx, 0, math.MaxInt32)
	put("spent", spent, err)
	connections, err := s.ListConnections(ctx)
	put("connections", connections, err)
	sessions, err := s.ListSessions(ctx, "", 1000)
	put("sessions", sessions, err)
	for _, x := range sessions {
		values, err := s.Context(ctx, x.ID)
		put("context of "+x.ID, values, err)
		page, err := s.History(ctx, x.ID, store.HistoryQuery{Limit: 1000})
		put("history of "+x.ID, page, err)
	}
	reply, err := s.Replay(ctx, "local\nsess_06h02bssw5sw72nhyrn35ecjtr\none")
	put("reply", reply, err)
	calls, err := s.ListCalls(ctx, store.CallQuery{Limit: 1000})
	put("calls", calls, err)
	for _, entry := range calls {
		call, err := s.Call(ctx, entry.CallID)
		put("call "+entry.CallID, call, err)
	}
	text, err := os.ReadFile(filepath.Join(source, contentFile))
	put("content", nil, err)
	for _, ref := range contentRefs.FindAllStringSubmatch(string(text), -1) {
		value, err := s.Content(ctx, ref[1])
		put("content "+ref[1], value, err)
	}
	rendered, err := json.MarshalIndent(out, "", " ")
	put("all", nil, err)
	return string(rendered) + "\n"
}
