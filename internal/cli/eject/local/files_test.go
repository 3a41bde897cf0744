package local

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// upper copies a file in upper case.
func upper(call *recurgent.Call) (any, error) {
	in, err := call.Open(call.Arg(0, "in"))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	out, err := call.Create(fmt.Sprint(call.Arg(1, "name")), "text/plain")
	if err != nil {
		return nil, err
	}
	fmt.Fprint(out, strings.ToUpper(string(text)))
	return out.Ref(), nil
}

// Ejected programs read and make files of one directory, and none outside of it.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in.txt"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	programs := []Program{{Role: "r", Method: "upper", Run: upper}}
	for _, c := range []struct {
		files         *os.Root
		in, name      string
		value, failed string
		made, content string
	}{
		{root, "in.txt", "out.txt", `{"$file":"out.txt"}`, "", "out.txt", "TEXT"},
		{root, "in.txt", "out.txt", `{"$file":"out-2.txt"}`, "", "out-2.txt", "TEXT"},
		{root, "in.txt", "../../up.txt", `{"$file":"up.txt"}`, "", "up.txt", "TEXT"},
		{root, "in.txt", "..", `{"$file":"file"}`, "", "file", "TEXT"},
		{root, "none.txt", "x", "", "file_not_found", "", ""},
		{root, "../../etc/passwd", "x", "", "file_not_found", "", ""},
		{nil, "in.txt", "x", "", "file_not_found", "", ""},
	} {
		host := &Host{Programs: programs, Files: c.files}
		ref, _ := json.Marshal(map[string]string{"$file": c.in})
		name, _ := json.Marshal(c.name)
		got := host.Call(Request{Method: "upper", Args: []json.RawMessage{ref, name}})
		if string(got.Value) != c.value || got.ErrorType != c.failed {
			t.Errorf("%s to %s: got %+v", c.in, c.name, got)
		}
		if c.made == "" {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(dir, c.made)); err != nil || string(text) != c.content {
			t.Errorf("%s: got %q, %v", c.made, text, err)
		}
	}
}

// Texts are read as the daemon reads them.
func TestTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\xef\xbb\xbfä\r\nb":                  "ä\r\nb",
		"\xe4\rb\r":                           "ä\nb\n",
		"a\rb\r\nc":                           "a\nb\r\nc",
		"a\r\nb\rc\x1a":                       "a\r\nb\rc",
		"\xff\xfe\xe4\x00\r\x00b\x00\x1a\x00": "ä\nb",
		"":                                    "",
	} {
		if got, err := io.ReadAll(decoded([]byte(text), encodingOf([]byte(text)))); err != nil || string(got) != want {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	}
}
