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
// [Page.Admin] is a separate handler for overrides, pauses and revocations.
//
// # Guarantees
//
//   - The page changes nothing. It answers GET and HEAD only. An explanation runs the guards
//     of the object's state, see [lifecycle.Manager.Explain].
//   - The page shows that a store cannot be read: with the status 503, or, on a page that
//     shows more, in the place of the store's data. It never shows an empty list instead.
//     Answers have no text of a store.
//   - Payloads are shown only as far as the function given to [Of] shows them. Counts and
//     lists do not read them.
//   - Lists of objects, keys and lock holders have limits. At most 100 streams are open at
//     once. An answer reads for at most 10 seconds.
//     Counts read all objects of a machine up to [Config].MaxObjects, stuck objects only the
//     ranges that a sweep reads. Each machine has one count at a time, and so has a lock tree of
//     several processes, which reads all its holders for a count.
//   - Names and texts of objects, tables, queues and locks are harmless in a page, whatever
//     they contain. A Content-Security-Policy forbids inline code, frames of others and
//     everything from elsewhere. The drawing library needs 'wasm-unsafe-eval'; only the route
//     /picture permits it.
//   - The pages have all facts as text and tables, without JavaScript.
//
// # Limits
//
//   - An answer is not a snapshot: objects change while it reads. Counts, and the lists of
//     the page of a machine, may be some seconds old, see [Page].
//   - Queues, and lock trees of type [lock.Tree], are those of this process. Machines and
//     owners are those of their stores, and the tree of a lock driver has the locks of all its
//     processes. If several processes share one address, each answer may come from a
//     different process. Put the name of the process into [Config].Title.
//   - An owner is shown as alive until a sweeper declares it dead.
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
//	/picture?machine=vm                        a page that draws the table with counts; with
//	                                           &at=running it marks that state instead
//	/picture.dot?machine=vm                    the same as DOT text, for Graphviz
//	/events, /events?machine=vm                server-sent events: "change" with a Change, and
//	                                           "problem" with a problem while a store fails
//	/static/...                                style sheet, scripts and the drawing library
//
// A route with a document answers with a page, or with the document as JSON: for
// ?format=json, or if the header Accept names application/json and not text/html. An error
// has the same two forms: a page, or a [lifecycle.ProblemDetails]. The default limit of a
// list is 100, the greatest one [lifecycle.MaxPage].
package inspect
