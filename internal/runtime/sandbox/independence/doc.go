// Package independence holds the test that the confinement of runners depends neither on the gate nor on the
// interpreter: see independence_test.go, which is built with the tag testnogate.
package independence
