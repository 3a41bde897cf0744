// Package independence holds the test that the confinement of runners does not depend on the gate or the
// interpreter: see independence_test.go, which is built with the tag testnogate.
package independence
