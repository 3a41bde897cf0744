package docs

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// rowsOfSeeds is how many requirements each part of docs/seeds.md has.
var rowsOfSeeds = map[string]int{"H": 62, "P": 107, "D": 25, "C": 38, "X": 18}

// Each requirement of the seeds is in the table once, and tests show it. That they exist is held by
// TestDocumentsNameWhatExists.
func TestEveryRequirementHasTests(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/seeds.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`^\| ([A-Z])-(\d+)(?:\.\.(\d+))? \| (.+) \| (.*) \|$`)
	seen := map[string]int{}
	for i, line := range strings.Split(string(data), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| row ") {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("docs/seeds.md:%d: not a row: %s", i+1, line)
			continue
		}
		from, _ := strconv.Atoi(m[2])
		to := from
		if m[3] != "" {
			to, _ = strconv.Atoi(m[3])
		}
		for n := from; n <= to; n++ {
			seen[fmt.Sprintf("%s-%02d", m[1], n)]++
		}
		for _, name := range strings.Split(m[5], ", ") {
			if !regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w+$`).MatchString(name) {
				t.Errorf("docs/seeds.md:%d: %s-%s has no test, but %q", i+1, m[1], m[2], name)
			}
		}
	}
	for part, rows := range rowsOfSeeds {
		for n := 1; n <= rows; n++ {
			name := fmt.Sprintf("%s-%02d", part, n)
			if seen[name] != 1 {
				t.Errorf("docs/seeds.md has %s %d times", name, seen[name])
			}
			delete(seen, name)
		}
	}
	for name := range seen {
		t.Errorf("docs/seeds.md has %s, of which there is no requirement", name)
	}
}
