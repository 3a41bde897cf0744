package serve

import "slices"

// keptShare is the part of a runner's memory that keptAnswers may take, as a divisor.
const keptShare = 16

// keptAnswers are answers of this run that the daemon need not send again as long as nothing has changed.
type keptAnswers struct {
	list []keptAnswer // oldest first
	size int
}

type keptAnswer struct {
	key  string // op and parameters
	id   uint64 // of the question
	body []byte
}

// find returns the answer of that key, or the zero value, whose id says that there is none.
func (k *keptAnswers) find(key string) keptAnswer {
	for _, a := range k.list {
		if a.key == key {
			return a
		}
	}
	return keptAnswer{}
}

// put keeps a copy of the answer in the place of the older one, and lets the oldest go while they take more than limit.
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
