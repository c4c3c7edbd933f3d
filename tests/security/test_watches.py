"""An open watch goes on when its reader loses the right to read, as in kube-apiserver v1.36.4.

There it was tried with a binding that is deleted, an account that is deleted and a client certificate that expires: the
watch that was open got every later event, and new requests were answered 403, 401 and 401.
"""

from .rig import CORE, RBAC, guarded_api, rule

MAPS = f"{CORE}/configmaps"


def test_an_open_watch_goes_on_and_a_new_one_is_refused() -> None:
    with guarded_api() as guarded:
        reader = guarded.account("reader", rule("get list watch", "configmaps"))
        token = {"Authorization": f"Bearer {reader.token}"}
        with guarded.api.watch(f"{MAPS}?resourceVersion=0", **token) as watch:
            guarded.make(MAPS, {"metadata": {"name": "one"}})
            guarded.admin("DELETE", f"{RBAC}/namespaces/default/rolebindings/reader")
            guarded.make(MAPS, {"metadata": {"name": "two"}})
            without_binding = reader.ask("GET", MAPS).status
            guarded.admin("DELETE", f"{CORE}/serviceaccounts/reader")
            guarded.make(MAPS, {"metadata": {"name": "three"}})
            without_account = reader.ask("GET", MAPS).status

            names = {name for _, name in watch.seen(3)}

    assert names == {"one", "two", "three"}
    assert (without_binding, without_account) == (403, 401)
