package openai

import (
	"sync"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/result"
)

// read_more is offered only once something was cut: until then it would cost
// every request its description and tempt the model for nothing.

// readMore returns the tool as an offer of its own; nil where it is not to be
// offered.
func (c *Chat) readMore() *offer {
	if !c.more || c.request.names[result.ReadMoreTool().Name] {
		return nil
	}
	d := c.options.Dialect
	if o, ok := readMoreOffers.Load(d); ok {
		return o.(*offer)
	}
	o, _ := readMoreOffers.LoadOrStore(d, makeOffer(dragoman.NewTools([]dragoman.Tool{result.ReadMoreTool()}), d, 0))
	return o.(*offer)
}

var readMoreOffers sync.Map // of offers by dialect

// tool returns the tool of ours that a model means by a name, with its plan.
func (c *Chat) tool(name string) (*dragoman.Tool, *dialect.Plan) {
	if t := c.ours.index.Find(name); t != nil {
		return t, c.ours.plans[t]
	}
	if o := c.readMore(); o != nil {
		if t := o.index.Find(name); t != nil {
			return t, o.plans[t]
		}
	}
	return nil, nil
}
