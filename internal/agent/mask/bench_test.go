package mask_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// BenchmarkJSON measures ordinary arguments: names and texts of several kinds and sizes, without secrets or
// allocations.
func BenchmarkJSON(b *testing.B) {
	var rows []string
	for i := range 10000 {
		rows = append(rows, fmt.Sprintf(
			`{"id":%d,"name":"customer %d","city":"Berlin","note":"a short text of some words","price":%d.5}`, i, i, i))
	}
	for _, c := range []struct{ name, raw string }{
		{"numbers", `{"a":2,"b":3}`},
		{"names", `{"query":"red shoes","sort_key":"price","limit":10,"page":{"after":"abc","token_count":5}}`},
		{"url", `{"url":"https://example.org/search?q=price&sort=asc&page=2"}`},
		{"escapes", `{"text":"Dear Sir:\n\nthank you for \"this\" letter.\n"}`},
		{"1MB", "[" + strings.Join(rows, ",") + "]"},
	} {
		raw, r := json.RawMessage(c.raw), rules()
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, changed := r.JSON(raw); changed {
					b.Fatal("an ordinary value was masked")
				}
			}
		})
	}
}

// BenchmarkKnown measures the cost per byte of searching for one known secret in texts that programs and servers send.
func BenchmarkKnown(b *testing.B) {
	k := mask.NewKnown("cAnAry-bearer-9f/Q+x=zz")
	for name, unit := range map[string]string{
		"prose": "Dear Sir, thank you for this letter of some words. ",
		"JSON":  `{"id":17,"name":"customer 17","city":"Berlin"},`, "escapes": `<a href=\"/x?q=a%20b&amp;c=d\">\n`,
		"run": "a", "hostile": "canary-bearer-9f/q x=z",
	} {
		text := []byte(strings.Repeat(unit, 1<<20/len(unit)))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, found := k.Bytes(text); found {
					b.Fatal("found what is not there")
				}
			}
		})
	}
}

// BenchmarkNewKnown measures the extra cost of a call that contains a secret.
func BenchmarkNewKnown(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mask.NewKnown("cAnAry-bearer-9f/Q+x=zz")
	}
}
