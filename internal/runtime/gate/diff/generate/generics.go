package generate

// generics are declarations in every program about types.
const generics = `
type pairø[A, B any] struct {
	A A
	B B
}

func (p pairø[A, B]) Swap() pairø[B, A] { return pairø[B, A]{p.B, p.A} }

type stackø[T any] struct{ items []T }

func (s *stackø[T]) Push(v T)  { s.items = append(s.items, v) }
func (s stackø[T]) Len() int   { return len(s.items) }
func (s *stackø[T]) Pop() (v T, ok bool) {
	if len(s.items) == 0 {
		return v, false
	}
	v = s.items[len(s.items)-1]
	s.items = s.items[:len(s.items)-1]
	return v, true
}

func (s *stackø[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i, v := range s.items {
			if !yield(i, v) {
				return
			}
		}
	}
}

// Seek leaves its loop in every way.
func (s *stackø[T]) Seek(stop int) (found T, n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("recovered %v", fmt.Sprintf("%T", p))
		}
	}()
	for i, v := range s.All() {
		defer func() { logø("after the loop", strconv.Itoa(i), fmt.Sprintf("%T", v)) }()
		for j, w := range s.All() {
			n++
			switch {
			case j < i:
				continue
			case stop == 0:
				return w, n, nil
			case stop == 1 && i == 1:
				panic("sought")
			case stop == 2:
				found = w
			}
			break
		}
		if stop == 3 {
			break
		}
	}
	if stop == 4 {
		panic(found)
	}
	return found, n, errors.New("end")
}

type namedø[T any] = map[string]T

type treeø[T any] struct {
	v           T
	left, right *treeø[T]
}

func (t *treeø[T]) Insert(v T, compare func(a, b T) int) *treeø[T] {
	if t == nil {
		return &treeø[T]{v: v}
	}
	if compare(v, t.v) < 0 {
		t.left = t.left.Insert(v, compare)
	} else {
		t.right = t.right.Insert(v, compare)
	}
	return t
}

func (t *treeø[T]) Walk(f func(T)) {
	if t != nil {
		t.left.Walk(f)
		f(t.v)
		t.right.Walk(f)
	}
}

func idø[T any](v T) T { return v }

func mapø[T, U any](list []T, f func(T) U) []U {
	var out []U
	for _, v := range list {
		out = append(out, f(v))
	}
	return out
}
`
