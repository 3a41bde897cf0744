// Package independence tests that the confinement of runners depends neither on the gate nor on the interpreter. Its
// test has the build tag testnogate.
package independence
