package cache

import "testing"

// A cache without a bound would grow without end, so there is none.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a cache of up to %d values was made", most)
				}
			}()
			New[int, int](most)
		}()
	}
	if _, err := NewWeighed(0, func(int, int) uint32 { return 1 }); err == nil {
		t.Error("a cache of weight 0 was made")
	}
	c := New[int, int](1)
	c.Set(1, 1)
	c.Set(2, 2)
	c.CleanUp()
	if n := c.EstimatedSize(); n != 1 {
		t.Errorf("a cache of one value holds %d", n)
	}
}
