package tools

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A world is what the scenarios speak of: three news sites of different forms, and a listing of films.
type world struct{ herald, courier, gazette, films *rig.Source }

func newWorld(t *testing.T) *world {
	w := &world{rig.NewSource(t, ""), rig.NewSource(t, ""), rig.NewSource(t, ""), rig.NewSource(t, filmListing)}
	w.day(1)
	return w
}

func (w *world) hosts() string {
	return strings.Join([]string{w.herald.Host(), w.courier.Host(), w.gazette.Host(), w.films.Host()}, ",")
}

// named has names in the place of addresses that change from run to run.
func (w *world) named(text []byte) []byte {
	for name, s := range map[string]*rig.Source{"herald": w.herald, "courier": w.courier, "gazette": w.gazette,
		"films": w.films} {
		text = bytes.ReplaceAll(text, []byte(s.Host()), []byte(name+".example"))
	}
	return text
}

// day has the sites show the news of a day. The Courier is down on the third, and from the fourth on the Gazette has
// another page.
func (w *world) day(n int) {
	var items, stories, old, changed string
	for i, topic := range []string{"Harbour strike", "Budget vote", "Flood watch"} {
		items += fmt.Sprintf("<item><title>Herald %d: %s</title><link>http://herald.example/%d/%d</link></item>", n,
			topic, n, i)
		stories += fmt.Sprintf(`%s{"headline":"Courier %d: %s","desk":"city"}`, map[bool]string{true: ","}[i > 0], n,
			topic)
		old += fmt.Sprintf(`<article><h2><a href="/%d/%d">Gazette %d: %s</a></h2><p>By our staff.</p></article>`, n, i,
			n, topic)
		changed += fmt.Sprintf(`<div class="card"><span class="hl">Gazette %d: %s</span> <a href="/%d/%d">Read on</a></div>`, n, topic, n, i)
	}
	w.herald.Body(`<?xml version="1.0"?><rss version="2.0"><channel><title>The Herald</title>` + items +
		"</channel></rss>")
	w.courier.Body(`{"edition":"morning","stories":[` + stories + "]}")
	if n == 3 {
		w.courier.Status(http.StatusServiceUnavailable)
	}
	if n >= 4 {
		old = changed
	}
	w.gazette.Body(`<!doctype html><title>The Gazette</title><nav><a href="/">Home</a> <a href="/sport">Sport</a></nav><main>` + old + "</main>")
}

const filmListing = `{"films":[
{"title":"Meridian","year":1997,"genres":["Sci-Fi","Thriller"],"score":8.4,"votes":91000},
{"title":"The Long Orbit","year":2014,"genres":["Sci-Fi"],"score":8.1,"votes":120500},
{"title":"Ordinary Light","year":2008,"genres":["Drama"],"score":7.9,"votes":43000},
{"title":"A House in Winter","year":1988,"genres":["Drama","Family"],"score":8.6,"votes":67000},
{"title":"The Tin Shed","year":2019,"genres":["Drama"],"score":9.8,"votes":12},
{"title":"Copper Street","year":2003,"genres":["Crime","Drama"],"score":8.2,"votes":88000}]}`

// questions are the calls of all scenarios, in the order in which they are made: five days of news, an evening with
// films, a debate, and sums as the control.
func (w *world) questions(ahead func(by string)) (all []question) {
	for day := 1; day <= 5; day++ {
		for i, s := range []struct {
			name, path string
			site       *rig.Source
		}{{"Herald", "/rss.xml", w.herald}, {"Courier", "/api/stories.json", w.courier}, {"Gazette", "/", w.gazette}} {
			q := question{scenario: "news", role: "news", method: "headlines", args: []any{s.site.URL + s.path},
				note: "these are not the headlines that the site shows today"}
			if day != 3 || s.name != "Courier" {
				q.want, q.not = []string{fmt.Sprintf("%s %d: Harbour strike", s.name, day),
					fmt.Sprintf("%s %d: Flood watch", s.name, day)}, []string{"Read on", "Sport"}
			}
			if i == 0 {
				q.before = func() { w.day(day); ahead(fmt.Sprintf("%dh", 24*(day-1))) }
			}
			all = append(all, q)
		}
		if day == 1 || day == 5 {
			all = append(all, question{scenario: "news", role: "assistant", method: "ask",
				args: []any{"What do the Herald and the Gazette say about the harbour strike?",
					map[string]any{"Herald": w.herald.URL + "/rss.xml", "Gazette": w.gazette.URL + "/"}},
				want: []string{fmt.Sprintf("Herald %d: Harbour strike", day),
					fmt.Sprintf("Gazette %d: Harbour strike", day)}, not: []string{"Budget"},
				note: "only what is about the harbour strike"})
		}
	}
	films := func(method string, want, not []string, note string, args ...any) {
		all = append(all, question{scenario: "films", role: "film finder", method: method, args: args, want: want,
			not: not, note: note})
	}
	list, few := w.films.URL+"/films.json", "a film with fewer than 1000 votes does not count, leave it out"
	films("find", []string{"Meridian", "The Long Orbit"}, []string{"Ordinary"},
		"the listing calls science fiction Sci-Fi", list, "science fiction")
	films("find", []string{"Ordinary Light", "Copper Street"}, []string{"Meridian"}, "", list, "drama")
	films("ask", []string{"Ordinary Light", "Copper Street"}, []string{"A House in Winter"},
		"of the dramas just found, those after 2000", "and which of these are after 2000?")
	films("top", []string{"A House in Winter", "Meridian", "Copper Street"}, []string{"The Tin Shed"}, few, list, 3)
	films("top", []string{"A House in Winter", "Meridian"}, []string{"The Tin Shed", "Copper"}, few, list, 2)
	films("ask", []string{"A House in Winter"}, []string{"Meridian"}, "of the two films just listed, the older one",
		"and which of those two is the oldest?")
	films("find", []string{"Meridian", "The Long Orbit"}, []string{"Ordinary"},
		"the listing calls science fiction Sci-Fi", list, "science fiction")
	films("top", []string{"A House in Winter", "Meridian", "Copper Street", "The Long Orbit"}, []string{"The Tin Shed"},
		few, list, 4)
	debate := func(method string, want []string, note string, args ...any) {
		all = append(all, question{scenario: "debate", role: "debate", method: method, args: args, want: want,
			note: note})
	}
	sides := []any{"stoic", "epicurean"}
	debate("host", []string{"stoic", "epicurean", "irtue"}, "both sides speak, on the question",
		"Is virtue enough for happiness?", sides, 2)
	debate("host", []string{"stoic", "epicurean", "death"}, "both sides speak, on the question",
		"Should we fear death?", sides, 1)
	debate("ask", []string{"virtue"}, "the one on virtue, which had two rounds",
		"Which of our questions had more rounds?")
	debate("host", []string{"stoic", "epicurean", "irtue"}, "both sides speak, on the question",
		"Is virtue enough for happiness?", sides, 1)
	sums := func(method, want string, args ...any) {
		all = append(all, question{scenario: "control", role: "calculator", method: method, args: args,
			want: []string{want}, note: want})
	}
	sums("add", "5", 2, 3)
	sums("add", "42", 40, 2)
	sums("multiply", "42", 6, 7)
	sums("solve", "6", "2x + 5 = 17")
	sums("solve", "3", "3x = 9")
	sums("add", "2", 1, 1)
	return all
}
