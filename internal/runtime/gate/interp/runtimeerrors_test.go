package interp

import (
	"fmt"
	"math"
	"testing"
)

// The runtime still makes these errors where it is led to them, and still holds the numbers of bounds where they are looked for.
func TestRuntimeErrors(t *testing.T) {
	tests := []struct {
		got       error
		text, typ string
	}{
		{errMakeLen(), "runtime error: makeslice: len out of range", "runtime.errorString"},
		{errMakeCap(), "runtime error: makeslice: cap out of range", "runtime.errorString"},
		{errMakeChan(), "makechan: size out of range", "runtime.plainError"},
		{errLoopLeft(), "runtime error: range function continued iteration after function for loop body returned false", "runtime.errorString"},
		{errLoopPanicked(), "runtime error: range function continued iteration after loop body panic", "runtime.errorString"},
		{errLoopOver(), "runtime error: range function continued iteration after whole loop exit", "runtime.errorString"},
		{errLoopPanicLost(), "runtime error: range function recovered a loop body panic and did not resume panicking", "runtime.errorString"},
		{boundsLike(errSliceLen(), 7, 5), "runtime error: slice bounds out of range [:7] with length 5", "runtime.boundsError"},
		{boundsLike(errSliceLenU(), math.MaxUint64, 5), "runtime error: slice bounds out of range [:18446744073709551615] with length 5", "runtime.boundsError"},
		{boundsLike(errSliceMaxLen(), 7, 5), "runtime error: slice bounds out of range [::7] with length 5", "runtime.boundsError"},
		{boundsLike(errSliceMaxLenU(), math.MaxUint64, 5), "runtime error: slice bounds out of range [::18446744073709551615] with length 5", "runtime.boundsError"},
		{boundsLike(errConvert(), 7, 5), "runtime error: cannot convert slice with length 5 to array or pointer to array with length 7", "runtime.boundsError"},
		{plainText("value method"), "value method", "runtime.plainError"},
	}
	for _, test := range tests {
		if typ := fmt.Sprintf("%T", test.got); test.got.Error() != test.text || typ != test.typ {
			t.Errorf("got %s %q, want %s %q", typ, test.got, test.typ, test.text)
		}
	}
}
