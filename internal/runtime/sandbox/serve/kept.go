package serve

import "slices"

// keptShare is the divisor that gives keptAnswers its share of a runner's memory.
const keptShare = 16

// keptAnswers caches answers of this run, which the daemon need not send again while nothing has changed.
type keptAnswers struct {
	list []keptAnswer // oldest first
	size int          // bytes of all keys and bodies
}

type keptAnswer struct {
	key  string // op and parameters
	id   uint64 // id of the question
	body []byte
}

// find returns the answer of that key, or the zero value, whose id is 0, if there is none.
func (k *keptAnswers) find(key string) keptAnswer {
	for _, a := range k.list {
		if a.key == key {
			return a
		}
	}
	return keptAnswer{}
}

// put stores a copy of the answer, replaces an older one with the same key, and drops the oldest while all exceed limit
// bytes. An answer larger than limit is not stored.
func (k *keptAnswers) put(a keptAnswer, limit int) {
	drop := func(i int) {
		k.size -= len(k.list[i].key) + len(k.list[i].body)
		k.list = slices.Delete(k.list, i, i+1)
	}
	if i := slices.IndexFunc(k.list, func(old keptAnswer) bool { return old.key == a.key }); i >= 0 {
		drop(i)
	}
	size := len(a.key) + len(a.body)
	if size > limit {
		return
	}
	for k.size+size > limit {
		drop(0)
	}
	a.body = slices.Clone(a.body)
	k.list = append(k.list, a)
	k.size += size
}
