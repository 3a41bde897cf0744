package gate

import (
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

const (
	maxArgDepth  = 16   // depth of type arguments within type arguments
	maxInstances = 4096 // generic types, including those that others mention
)

// instancePolicy refuses generic types that mention ever larger instances of themselves: walking such a type never
// ends.
func (c *check) instancePolicy() *Refusal {
	var seen typeutil.Map
	var work []types.Type
	add := func(t types.Type) {
		if seen.At(t) == nil {
			seen.Set(t, true)
			work = append(work, t)
		}
	}
	for id, inst := range c.info.Instances {
		if _, ok := inst.Type.(*types.Named); !ok {
			continue
		}
		add(inst.Type)
		for len(work) > 0 {
			t := work[len(work)-1]
			work = work[:len(work)-1]
			if tooNested(t) || seen.Len() > maxInstances {
				return c.refuse(invalidCode, id.Pos(), "the generic type "+id.Name+" instantiates itself without end",
					"Let a generic type mention itself only with its own type parameters.")
			}
			parts(t, add)
		}
	}
	return nil
}

// parts calls add for each type that t directly consists of.
func parts(t types.Type, add func(types.Type)) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if t.TypeArgs().Len() > 0 {
			for a := range t.TypeArgs().Types() {
				add(a)
			}
			add(t.Underlying())
		}
	case *types.Map:
		add(t.Key())
		add(t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			add(f.Type())
		}
	case *types.Signature:
		for _, list := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range list.Variables() {
				add(v.Type())
			}
		}
	case interface{ Elem() types.Type }:
		add(t.Elem())
	}
}

// tooNested reports whether type arguments nest deeper in t than a program may nest them.
func tooNested(t types.Type) bool { return argDepth(t, 0) > maxArgDepth }

// argDepth returns how deeply type arguments nest in t. It stops counting beyond maxArgDepth.
func argDepth(t types.Type, depth int) int {
	if depth > maxArgDepth {
		return depth
	}
	deepest := depth
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		for a := range t.TypeArgs().Types() {
			deepest = max(deepest, argDepth(a, depth+1))
		}
	case interface{ Elem() types.Type }:
		deepest = argDepth(t.Elem(), depth)
	}
	return deepest
}
