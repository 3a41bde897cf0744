package local

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// Ejected programs read and create files in one directory, and none outside of it.
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

// fetchesTwice fetches a file, and returns its text and that of a file that it creates.
func fetchesTwice(call *recurgent.Call) (any, error) {
	f, err := call.FetchFile(call.Arg(0, "url").(string))
	if err != nil {
		return nil, err
	}
	text, err := call.OpenText(f)
	if err != nil {
		return nil, err
	}
	fetched, err := io.ReadAll(text)
	if err != nil {
		return nil, err
	}
	own, err := call.Create("own.txt", "text/plain")
	if err != nil {
		return nil, err
	}
	fmt.Fprint(own, "own")
	if err := own.Close(); err != nil {
		return nil, err
	}
	made, err := call.ReadFile(own)
	return []any{string(fetched), string(made), f}, err
}

// Ejected programs download files to the directory and read them. Tests use the files of the recorded call.
func TestFetchFile(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a.csv" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "M\xfcller")
	}))
	defer s.Close()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p := Program{Role: "r", Method: "get", Run: fetchesTwice}
	host := &Host{Programs: []Program{p}, Files: root, Download: Download}
	get := func(path string) Outcome {
		return host.Call(Request{Method: "get", Args: []json.RawMessage{json.RawMessage(`"` + s.URL + path + `"`)}})
	}
	if got := get("/a.csv"); string(got.Value) != `["Müller","own",{"$file":"a.csv"}]` {
		t.Errorf("got %s", got)
	}
	if got := get("/none"); got.ErrorType != "not_found" {
		t.Errorf("of a page that is not there: %s", got)
	}
	host.Download = nil
	if got := get("/a.csv"); got.ErrorType != "denied" {
		t.Errorf("without a download: %s", got)
	}
	tape := `{"asks":[{"op":"fetch_file","params":{"url":"http://x/a.csv"},"result":{"file":"file_1","sha256":"","bytes":7,"name":"a.csv","media_type":"text/csv","status":200,"raw":"TfxsbGVy"}},
		{"op":"create","params":{"name":"own.txt","media_type":"text/plain"},"result":{"file":"file_2","sha256":"","bytes":3}}]}`
	c := Case{Args: []json.RawMessage{json.RawMessage(`"http://x/a.csv"`)}, Effects: json.RawMessage(tape),
		Expect: Expectation{Value: json.RawMessage(`["Müller","own",{"$file":"file_1"}]`)}}
	if err := Check([]Program{p}, p, c); err != nil {
		t.Errorf("recorded: %v", err)
	}
}

// Texts are decoded as by the daemon.
func TestTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\xef\xbb\xbfä\r\nb":                  "ä\r\nb",
		"\xe4\rb\r":                           "ä\nb\n",
		"a\rb\r\nc":                           "a\nb\r\nc",
		"a\r\nb\rc\x1a":                       "a\r\nb\rc",
		"\xff\xfe\xe4\x00\r\x00b\x00\x1a\x00": "ä\nb",
		"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xfc</a>": "<?xml version='1.0' encoding='UTF-8'?><a>ü</a>",
		"": "",
	} {
		if got, err := io.ReadAll(decoded([]byte(text), Charset([]byte(text)))); err != nil || string(got) != want {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	}
}

// A file that a program creates must have the same bytes as in the recorded call, or the case fails.
func TestMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := Program{Role: "r", Method: "upper", Run: func(call *recurgent.Call) (any, error) {
		ref, err := upper(call)
		if err != nil {
			return nil, err
		}
		info, err := call.FileInfo(call.Arg(0, "in"))
		return []any{ref, info.Name}, err
	}}
	for sum, want := range map[string]string{
		"e4ba216b53e675d3ce45a8584de79ecc013718ef83ebd53f29d47d97af594386": "",
		"00": "the file file_2 has other bytes than the one of the recorded call",
	} {
		tape := `{"asks":[{"op":"open","params":{"file":"file_1"},"result":{"file":"file_1"}},{"op":"create","params":{"name":"n","media_type":"text/plain"},"result":{"file":"file_2","sha256":"` + sum + `"}},
			{"op":"file","params":{"file":"file_1"},"result":{"name":"in.txt","media_type":"text/plain","encoding":"utf-8","bytes":4}}]}`
		c := Case{Args: []json.RawMessage{json.RawMessage(`{"$file":"file_1"}`), json.RawMessage(`"n"`)},
			Effects: json.RawMessage(tape), Files: map[string]HeldFile{"file_1": {Name: "in.txt", Path: "in"}},
			dir:    dir,
			Expect: Expectation{Value: json.RawMessage(`[{"$file":"file_2"},"in.txt"]`)}}
		if err := Check([]Program{p}, p, c); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", sum, err, want)
		}
	}
}

// A call that failed has recorded no file that it made, and its program may make it in a test all the same.
func TestMadeByACallThatFailed(t *testing.T) {
	t.Parallel()
	fails := func(call *recurgent.Call) (any, error) {
		made, err := call.Create("made.txt", "text/plain")
		if err != nil {
			return nil, err
		}
		fmt.Fprint(made, "made")
		if err := made.Close(); err != nil {
			return nil, err
		}
		text, err := call.ReadFile(made)
		return nil, recurgent.Fail("not_today", fmt.Sprint(string(text), err))
	}
	p := Program{Role: "r", Method: "fails", Run: fails}
	for _, tape := range []string{"", `{"asks":[{"op":"tools","params":{},"result":[]}]}`} {
		c := Case{Expect: Expectation{ErrorType: "not_today"}, Effects: json.RawMessage(tape)}
		if tape == "" {
			c.Effects = nil
		}
		if err := Check([]Program{p}, p, c); err != nil {
			t.Errorf("with the tape %q: %v", tape, err)
		}
	}
}
