package cli

import (
	"strings"
	"testing"
)

// A command is printed only if it is unchanged by cleaning. Otherwise the request is printed, with names
// percent-encoded.
func TestInboxPrintsNoOtherCommand(t *testing.T) {
	t.Parallel()
	const entry = `{"id":"wait_1","kind":"approval","role":"a\u001b[2J","method":"m\nX","since":"2026-11-21T02:10:00.123Z","summary":"gen-2\nwaits \u202e","evidence":{},` +
		`"operations":[{"name":"approve","method":"POST","path":"/v1/tools/a%1B[2J/methods/m/approve","body":{"generation":"gen-2"},"scope":"operate","command":"recurgentd tools approve 'a` + "\\u001b" + `[2J' m"},` +
		`{"name":"quarantine","method":"POST","path":"/v1/tools/a/methods/m/quarantine","body":{},"scope":"operate","command":"recurgentd tools quarantine a m"},` +
		`{"name":"drop","method":"DELETE","path":"/v1/calls/call_1/verdict","body":null,"scope":"operate"}]}`
	const want = "approval a [2J.m X, since 2026-11-21T02:10:00.123Z: gen-2 waits \uFFFD\n" +
		"  approve: POST /v1/tools/a%1B[2J/methods/m/approve {\"generation\":\"gen-2\"}\n" +
		"  quarantine: recurgentd tools quarantine a m\n" +
		"  drop: DELETE /v1/calls/call_1/verdict\n"
	_, out, errs, code := answers(t, map[string]string{"GET /v1/inbox": `{"data":[` + entry + `],"next_cursor":null}`},
		"inbox")
	if out != want || errs != "" || code != 0 {
		t.Errorf("%d %s\n%q\nwant\n%q", code, errs, out, want)
	}
	_, out, _, _ = answers(t, map[string]string{"GET /v1/inbox": `{"data":[],"next_cursor":null}`}, "inbox", "r", "m",
		"--kind", "effects")
	if out != "nothing waits for a decision\n" {
		t.Errorf("an empty one: %q", out)
	}
}

func TestSimulateCommand(t *testing.T) {
	t.Parallel()
	reply := `{"changed":[{"call_id":"call_1","role":"a\u001b","method":"m","was":{"decision":"run","reason":"healthy","generation":"gen-1"},"would_be":{"decision":"refuse","reason":"approval_required"}}],"looked_at":7,"not_known":1,"approval":{"waiting":3,"durable":2,"programs":[]}}`
	sent, out, errs, code := answers(t, map[string]string{"POST /v1/policy/simulate": reply}, "policy", "simulate",
		"approval_required=true", "degraded.rate=0.5", "--calls", "7")
	const want = "1 of 7 calls would be decided otherwise; not known of 1\n3 programs would wait for approval, 2 of them durable\nCALL    METHOD  WAS                  WOULD-BE\ncall_1  a .m    run gen-1 (healthy)  refuse (approval_required)\n"
	if out != want || errs != "" || code != 0 || !strings.Contains(sent[0],
		`"patch":{"approval_required":true,"degraded":{"rate":0.5}}`) || !strings.Contains(sent[0], `"calls":7`) {
		t.Errorf("%d %s %v\n%s\nwant\n%s", code, errs, sent, out, want)
	}
	if _, _, errs, code := answers(t, nil, "policy", "simulate", "nothing"); code != ExitUsage || errs == "" {
		t.Errorf("%d %s", code, errs)
	}
}
