package mcpserve

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

const (
	// gatewayMeta is the key of _meta under which we name ourselves where a server has
	// its own name.
	gatewayMeta = "io.github.dragoman-mcp/gateway"
	// mostInfo is how long a server's description of itself may be, in bytes: icons may
	// be in it as data URLs.
	mostInfo = 64 << 10
)

// info is the object in which we name ourselves.
func (d *Door) info() json.RawMessage {
	o := rawjson.Object{}
	o.Set("name", rawjson.Quote(d.o.Name))
	o.Set("version", rawjson.Quote(d.o.Version))
	return o.Bytes()
}

// identity is who answers at the place of one server: the server, with its title,
// version and icons as it gave them, and in _meta that it is reached through us. One
// that says less than clients need, or far more, is not named.
func (d *Door) identity(theirs json.RawMessage) (info, meta json.RawMessage) {
	o, err := rawjson.ParseObject(theirs)
	if err != nil || len(theirs) > mostInfo {
		return d.info(), nil
	}
	name, named := rawjson.String(o.Get("name"))
	if _, versioned := rawjson.String(o.Get("version")); !named || name == "" || !versioned {
		return d.info(), nil
	}
	gateway := rawjson.Object{}
	gateway.Set(gatewayMeta, d.info())
	return theirs, gateway.Bytes()
}
