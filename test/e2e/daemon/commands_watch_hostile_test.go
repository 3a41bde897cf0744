package daemon

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/clitest"
)

func hostileCall(n int, text string) agent.LogEntry {
	quoted, _ := json.Marshal(text)
	e := clitest.Failing(clitest.Entry(n, 0, "r.m", string(quoted), "error", "persisted\x1b[31m", 1), text, text)
	e.Role, e.Method, e.Timestamp, e.WeakSuccessReasons = "role"+text, "method"+text, "2026-11-21T06:15:\x1b[3m.250Z",
		[]string{text}
	return e
}

// No byte of a stranger's text is obeyed by the terminal: neither on the screen, nor as lines, nor as JSON or YAML.
func TestWatchShowsHostileTextPlain(t *testing.T) {
	t.Parallel()
	s := newStageDaemon(t)
	for i, text := range clitest.HostileTexts {
		s.end(hostileCall(i+1, text))
	}
	s.end(clitest.Entry(50, 0, "good.end", "1", "ok", "persisted", 1))
	w := watchOn(t, s, 100, 30)
	w.Shows("good.end(1)", "漢字かな交じり文", "owned")
	w.Press("/")
	w.Shows("filter:")
	w.Press("\x1b[200~" + "pasted\u009b31m\u202e" + "\x1b[201~") // pasted text, too
	w.Shows("filter: pasted")
	w.Press("\r")
	w.Shows("role=pasted", "Esc all")
	w.Press("\x1b")
	w.Shows("good.end(1)")
	w.Press("q")
	w.Ends(0)
	checkObeyed(t, "screen", w.Bytes())
	for _, form := range [][]string{{"--plain"}, {"--output", "json"}, {"--output", "yaml"}} {
		w := watchOn(t, s, 200, 250, form...)
		w.Shows("good")
		if err := w.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		w.Ends(0)
		checkObeyed(t, strings.Join(form, " "), w.Bytes())
	}
}

// checkObeyed wants no sequence in the bytes but those that a screen of ours consists of.
func checkObeyed(t *testing.T, what string, raw []byte) {
	t.Helper()
	ours := regexp.MustCompile("^\x1b(\\[[<=>?]?[0-9;]*[a-zA-HJKLMPWXdhlmru@]|\\[\\?[0-9]+\\$p|[=>78])")
	for i, b := range raw {
		if b == 0x1b && !ours.Match(raw[i:]) {
			t.Errorf("%s: a sequence of somebody else: %q", what, raw[i:min(len(raw), i+20)])
		}
		if b < ' ' && !strings.ContainsRune("\x1b\r\n\t\b", rune(b)) || b == 0x7f {
			t.Errorf("%s: a control character: %q", what, raw[max(0, i-10):min(len(raw), i+10)])
		}
	}
	for _, r := range "\u009b\u009d\u202e\u200d\ufeff\u2028" {
		if bytes.ContainsRune(raw, r) {
			t.Errorf("%s: %U came through", what, r)
		}
	}
	if text := string(raw); strings.ToValidUTF8(text, "") != text {
		t.Errorf("%s: broken UTF-8", what)
	}
	for _, part := range []string{"\x1b]", "\x1bP", "\x1b[31m\x1b", "\x1b[3m"} {
		if bytes.Contains(raw, []byte(part)) {
			t.Errorf("%s: %q came through", what, part)
		}
	}
}
