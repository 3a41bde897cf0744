// Package mask hides secrets in what is stored or shown to a model. A Known finds secrets whose values are known, in the ways in
// which they may be written. The package works on plain data, does no I/O, and may be used concurrently.
package mask
