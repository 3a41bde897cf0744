package wire

import "testing"

func TestBoundText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""}, {"a", 0, ""}, {"abcde", 5, "abcde"}, {"abcdef", 5, "a …"}, {"ééé", 6, "ééé"},
		{"éééé", 7, "é …"}, {"éééé", 6, "é …"}, {"a€€€", 8, "a€ …"}, {"€€€", 7, "€ …"},
		{"a\xffb", 5, "a\uFFFDb"}, {"a\xffb", 4, " …"}, {"\xff\xff\xff", 7, "\uFFFD …"},
		// no room for the mark
		{"abcd", 3, "abc"}, {"é€", 4, " …"}, {"é€", 3, "é"}, {"€", 2, ""}, {"a\xff", 3, "a"},
	} {
		if got := BoundText([]byte(c.text), c.limit); got != c.want || len(got) > c.limit {
			t.Errorf("%q within %d bytes: got %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}
