package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each directory of baselines has a README that says of every file by which command, with which model and when it was
// made.
func TestSeed001Line54BaselinesSayHowTheyWereMade(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../../docs/baselines/20*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no baselines (%v)", err)
	}
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		rows := strings.Split(string(text), "\n")
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Name() == "README.md" {
				continue
			}
			found := false
			for _, row := range rows {
				cells := strings.Split(row, " | ")
				if len(cells) != 4 || !strings.Contains(cells[0], "`"+f.Name()+"`") {
					continue
				}
				found = true
				if cells[1] == "" || cells[2] == "" ||
					!regexp.MustCompile(`^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ \|$`).MatchString(cells[3]) ||
					!strings.HasPrefix(cells[3], filepath.Base(dir)) {
					t.Errorf("%s: command %q, model %q, time %q", f.Name(), cells[1], cells[2], cells[3])
				}
			}
			if !found {
				t.Errorf("%s/README.md does not say how %s was made", dir, f.Name())
			}
		}
	}
}

// The contracts page says that the conversation history is adjacent to a contract, not part of its payload.
func TestSeed000Line196ContractsPageExplainsHistory(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "## Contracts and the history\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, says := range []string{"adjacent", "no part of it", "fingerprint", "signature"} {
		if !ok || !strings.Contains(section, says) {
			t.Errorf("docs/contracts.md does not say %q of the history", says)
		}
	}
}
