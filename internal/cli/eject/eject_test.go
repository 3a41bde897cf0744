package eject

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// Directory names are distinct, and valid for the go command and every file system.
func TestDirName(t *testing.T) {
	t.Parallel()
	taken, seen := map[string]bool{}, map[string]bool{}
	good := regexp.MustCompile(`^[a-z][a-z0-9_]{0,60}$`)
	for _, c := range [][2]string{{"tax", "net"}, {"Tax", "net"}, {"tax", "NET"}, {"tax_", "net"}, {"tax", "_net"},
		{"_", "_"}, {"ä", "x"}, {"ö", "x"}, {"..", ".."}, {"movie finder", "find"}, {"movie-finder", "find"},
		{string(make([]rune, 200)), "x"}, {"9", "9"}, {"con", "x"}} {
		name := dirName(c[0], c[1], taken)
		if !good.MatchString(name) || seen[name] {
			t.Errorf("%q: %q", c, name)
		}
		seen[name] = true
	}
	if !seen["tax_net"] || !seen["movie_finder_find"] {
		t.Errorf("plain names do not stay: %v", seen)
	}
}

// Effects that cannot be replayed or contain a secret give a reason. Headers and cookies of fetches are removed.
func TestReplayable(t *testing.T) {
	t.Parallel()
	rules := mask.Compile([]string{"token", "password"})
	for effects, want := range map[string]string{
		`{"v":1,"now":"2026-11-21T02:10:00Z","clock":1}`:                                                                                       "it reads the clock",
		`{"v":1,"seed":"AAAAAAAAAAA"}`:                                                                                                         "it uses randomness",
		`{"v":1,"input_history":{"messages":[]}}`:                                                                                              "it was given a history",
		`{"v":1,"asks":[{"op":"history","params":{},"digest":"x"}]}`:                                                                           "it reads more of the history than was recorded",
		`{"v":1,"asks":[{"op":"fetch","params":{"url":"http://x/?token=1"},"result":{"status":200}}]}`:                                         secretReason,
		`{"v":1,"asks":[{"op":"fetch","params":{"url":"http://u:p@x/"},"result":{"status":200}}]}`:                                             secretReason,
		`{"v":1,"asks":[{"op":"fetch","params":{"url":"http://x/"},"result":{"status":200,"body":"{\"token\":\"t\"}"}}]}`:                      secretReason,
		`{"v":1,"asks":[{"op":"fetch","params":{"url":"http://x/","body":"{\"password\":\"t\"}"},"result":{"status":200}}]}`:                   secretReason,
		`{"v":1,"asks":[{"op":"call","params":{"role":"r","method":"m","kwargs":{"password":"p"}},"result":{"status":"ok"}}]}`:                 secretReason,
		`{"v":1,"asks":[{"op":"call","params":{"role":"r","method":"m"},"result":{"value":"[masked]"}}]}`:                                      secretReason,
		`{"v":1,"asks":[{"op":"open","params":{"file":"file_1"},"result":{"file":"file_1","sha256":"x","bytes":1}}]}`:                          "it reads a file that is gone, file_1",
		`{"v":1,"asks":[{"op":"fetch_file","params":{"url":"http://x/"},"result":{"file":"file_1","media_type":"text/csv","left_out":true}}]}`: "it reads a file that is gone, file_1",
		`{"v":1,"asks":[{"op":"fetch_file","params":{"url":"http://x/"},"result":{"media_type":"text/csv;charset=iso-8859-5","raw":"4w=="}}]}`: "it fetches text in iso-8859-5, which the module does not read",
		`7`: "its recorded effects are not readable",
		`{"v":1,"asks":[{"op":"fetch","params":7}]}`: "its recorded effects are not readable",
	} {
		if got := (&Program{}).replayable(json.RawMessage(effects), rules); got.reason != want || got.tape != nil {
			t.Errorf("%s: %s, %q, want %q", effects, got.tape, got.reason, want)
		}
	}
	for _, effects := range []string{
		`{"asks":[{"op":"open","params":{"file":"file_1"},"error":{"type":"file_not_found","message":"gone"}}]}`,
		`{"asks":[{"op":"fetch_file","params":{"url":"http://x/"},"result":{"file":"file_1","media_type":"text/csv","raw":"TfxsbGVy"}}]}`,
	} {
		if got := (&Program{}).replayable(json.RawMessage(effects),
			rules); got.reason != "" || string(got.tape) != effects {
			t.Errorf("%s: %s, %q", effects, got.tape, got.reason)
		}
	}
	got := (&Program{}).replayable(json.RawMessage(
		`{"v":1,"context":{"a":1},"asks":[{"op":"fetch","params":{"url":"http://x/","header":{"X-Mine":"s3cret"}},"result":{"status":200,"header":{"Set-Cookie":"s3cret","A":"b"},"body":"","fetched_at":""}}]}`), rules)
	if want := `{"asks":[{"op":"fetch","params":{"url":"http://x/"},"result":{"status":200,"header":{"A":"b"},"body":"","fetched_at":""}}]}`; string(got.tape) != want || string(got.memory) != `{"a":1}` || got.reason != "" {
		t.Errorf("got %s, %s, %q", got.tape, got.memory, got.reason)
	}
}

// Programs that the go command would ignore or could not import are refused by name.
func TestCompilable(t *testing.T) {
	t.Parallel()
	for code, ok := range map[string]bool{
		"package tool\n": true, "// x\n\npackage tool // y\n": true, "package main\n": false, "package x_test\n": false,
		"": false, "//go:build ignore\n\npackage tool\n": false,
	} {
		if err := compilable(code); (err == nil) != ok {
			t.Errorf("%q: %v", code, err)
		}
	}
}
