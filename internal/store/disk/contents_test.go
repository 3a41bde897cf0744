package disk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/store"
)

func contentsOf(values ...string) contentDoc {
	doc := contentDoc{head: head{SchemaVersion: 2, LSN: 1<<63 + 7}}
	for i, v := range values {
		e := store.Kept{Content: store.Content{Ref: fmt.Sprintf("content:%d", i), Value: json.RawMessage(v)}}
		for j := range i {
			e.Sessions = append(e.Sessions, fmt.Sprintf("sess_\"<%d>", j))
		}
		doc.Entries = append(doc.Entries, e)
	}
	return doc
}

// The document equals an indented one in content. Values that are not valid JSON are refused.
func TestContentDocument(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{{}, {`null`}, {`1`, `"<a> & \u2028 \u00e4"`, "\"\u2028 ü \U0001F600\"",
		`{"b":[1,{"c":-0.5e-7}],"a":"\n"}`, strings.Repeat("[", 500) + strings.Repeat("]", 500)}} {
		doc := contentsOf(values...)
		text, err := encodeDoc(doc)
		if err != nil {
			t.Fatal(err)
		}
		indented, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var got, want contentDoc
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := json.Unmarshal(indented, &want); err != nil {
			t.Fatal(err)
		}
		for i := range want.Entries {
			want.Entries[i].Value = compact(want.Entries[i].Value)
		}
		if len(want.Entries) == 0 {
			want.Entries = []store.Kept{} // would be null without it
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %s, want what is in %s", text, indented)
		}
	}
	if text, err := encodeDoc(contentsOf(`{"a":`)); err == nil {
		t.Errorf("got %s for a value that is not JSON", text)
	}
}

func BenchmarkContentDocument(b *testing.B) {
	row := `{"id":1,"name":"row number 1","tags":["a","b"],"x":1.5},`
	doc := contentsOf("[" + strings.TrimSuffix(strings.Repeat(row, 2<<20/len(row)), ",") + "]")
	b.Run("this", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = encodeDoc(doc)
		}
	})
	b.Run("indented", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.MarshalIndent(doc, "", "  ")
		}
	})
}
