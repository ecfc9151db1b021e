// Package stage is the room for what plays a part in demonstrations and tests: servers
// that behave and servers that misbehave, and what watches a test for leaks and for
// wasted work. Of the product only the demo server is on it.
package stage
