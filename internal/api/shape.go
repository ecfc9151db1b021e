package api

import (
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/result"
)

// shape returns the form in which the models of a dialect read results best.
func (a *API) shape(d *dialect.Dialect) *result.Shape {
	return &result.Shape{
		Profile: result.Profile(d.Wire().Result),
		Limit:   a.ResultLimit,
		Images:  true,
	}
}
