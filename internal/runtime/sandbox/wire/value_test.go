package wire

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkCheckValue checks a megabyte of objects, as every call with such a value does.
func BenchmarkCheckValue(b *testing.B) {
	var rows []string
	for i := range 14_000 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"row number %d","tags":["a","b"],"x":%.1f}`, i, i,
			1.5*float64(i)))
	}
	value := []byte("[" + strings.Join(rows, ",") + "]")
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		if err := CheckValue(value, 1000); err != nil {
			b.Fatal(err)
		}
	}
}
