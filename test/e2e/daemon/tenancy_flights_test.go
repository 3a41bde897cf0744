package daemon

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Two owners wait for the same program, which a model writes with what one of them sent. The other gets no word of
// that: neither of programs that were refused, nor of why there is none.
func TestSharedForgesShowNothing(t *testing.T) {
	t.Parallel()
	const canary = "canary-of-ann-4711"
	bad := rig.Program("\tn := 1 + \"" + canary + "\"\n\treturn n, nil") // its error quotes the constant
	for name, next := range map[string]string{"refused for good": bad, "refused, then written": rig.ProgGiven} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, release := rig.NewModel(t, nil), make(chan struct{})
			m.Default(func(q openaitest.Request) openaitest.Reply {
				switch {
				// ben's own request, where he came too late for ann's: the model repeats what it was sent
				case !strings.Contains(q.Text, canary):
					return openaitest.Code(rig.ProgGiven)
				case q.Repair:
					return openaitest.Code(next)
				}
				return openaitest.Reply{Wait: release, Code: bad}
			})
			// replicas share programs, not why there is none
			d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens",
				"ann token-of-ann-in-a-0001 scopes=read,call\nben token-of-ben-in-a-0002 scopes=read,call\n")).One()
			ann, ben := person(d, "token-of-ann-in-a-0001", ""), person(d, "token-of-ben-in-a-0002", "")
			begin := func(p *rig.Daemon, arg string) (callID string) {
				in := p.Session("clerk", map[string]any{"debug": true})
				r := p.Send(http.MethodPost, "/v1/sessions/"+in+"/calls",
					[]byte(`{"method": "look", "args": ["`+arg+`"]}`), map[string]string{"Prefer": "respond-async"})
				callID, _ = r.Object(t)["call_id"].(string)
				await(t, p, callID, "event: call.forging")
				return callID
			}
			first := begin(ann, canary)
			m.Arrived(1)
			second := begin(ben, "of ben")
			close(release)
			await(t, ann, first, "event: call.finished")
			await(t, ben, second, "event: call.finished")
			mine, theirs := ann.Get("/v1/calls/"+first), ben.Get("/v1/calls/"+second)
			if text := string(rig.Encode(t, mine["outcome"])) + string(rig.Encode(t,
				mine["attempt_failures"])); !strings.Contains(text, canary) {
				t.Errorf("ann's own call does not say what was refused: %v", mine)
			}
			places := map[string]string{}
			for _, path := range []string{"/v1/calls/" + second, "/v1/calls/" + second + "/why",
				"/v1/calls/" + second + "/events", fmt.Sprint("/v1/sessions/", theirs["session_id"], "/history"),
				"/v1/tools/clerk", "/v1/calls"} {
				places[path] = string(ben.Send(http.MethodGet, path, nil, nil).Body)
			}
			for place, text := range places {
				if strings.Contains(text, canary) || strings.Contains(text, first) ||
					strings.Contains(text, fmt.Sprint(mine["session_id"])) {
					t.Errorf("ben's %s shows what is of ann: %s", place, text)
				}
			}
		})
	}
}

// await reads the events of a call until one of them begins so.
func await(t *testing.T, p *rig.Daemon, callID, event string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	resp := p.Stream(ctx, "/v1/calls/"+callID+"/events", nil)
	defer resp.Body.Close()
	seen := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); seen += lines.Text() + "\n" {
		if strings.HasPrefix(lines.Text(), event) {
			return
		}
	}
	t.Fatalf("the events of %s end without %q:\n%s", callID, event, seen)
}
