// Package inspect serves the page of an operator: what every machine's objects do, which
// of them are stuck and why, what waits in the queues, and which locks are held.
//
//	page, err := inspect.New(&inspect.Config{
//		Machines: []inspect.Machine{inspect.Of(vms, nil), inspect.Of(disks, nil)},
//	})
//	mux.Handle("/inspect/", http.StripPrefix("/inspect", page))
//	server.RegisterOnShutdown(page.Close)
//
// The handler is read only. Protect it like every other internal page: it authenticates
// nothing. It can be mounted below any prefix with [http.StripPrefix], because all links
// of its pages are relative.
//
// # Routes
//
//	/                                          Overview
//	/machine?machine=vm                        MachinePage
//	/objects?machine=vm                        ObjectList; also &state=running (may be repeated)
//	                                           &after=ID &limit=100, or &stuck=1 &limit=100
//	/object?machine=vm&id=vm-1                 ObjectPage; also &before=51
//	/queues                                    QueuePage
//	/locks                                     LockPage
//	/owners                                    OwnerPage
//	/picture?machine=vm                        a page that draws the table with counts
//	/picture.dot?machine=vm                    the same as DOT text, for Graphviz
//	/events, /events?machine=vm                server-sent events, see Change
//	/static/...                                style sheet, scripts and the drawing library
//
// A route with a document answers with a page, or with the document as JSON: for
// ?format=json, or if the header Accept names application/json and not text/html. The
// default limit of a list is 100, the greatest one [lifecycle.MaxPage].
package inspect
