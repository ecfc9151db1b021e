// Package toolsettest checks that a [dragoman.Toolset] keeps its contract, as
// testing/slogtest does for handlers of logs.
//
// Rules, caches and catalogs are toolsets around a toolset, and so is a
// connection to a server that serves one. All are checked in the same way: the
// innermost is an [Inner], whose tools do what a test needs, and [Run] looks at
// it through whatever is around it.
//
//	func TestToolset(t *testing.T) {
//		toolsettest.Run(t, func(t *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
//			return mine.Around(inner)
//		})
//	}
package toolsettest
