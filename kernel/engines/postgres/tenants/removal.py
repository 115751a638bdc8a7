"""Erases the rows of a tenant; its number is not used again, so that a server that still has it open finds nothing."""

from kernel.core.errors import Fault
from kernel.engines.postgres.statements import run
from kernel.engines.postgres.tenants.moving import TAKEN, clear_left
from kernel.engines.postgres.tenants.placement import PoolOf, TenantPlace, placements, transaction
from kernel.engines.postgres.tenants.row_diff import forget_rows


def erase_rows(home: str, tenant: str, pool_of: PoolOf) -> int:
    """Erase a tenant in its database and in the directory; return the number of its rows. Raises Fault."""
    if tenant not in dict(placements(pool_of(home))):
        return 0
    place = TenantPlace(home, tenant, pool_of).find()
    clear_left(home, tenant, place, pool_of)
    with transaction(place.pool) as db:
        if not run(db, "engine.moving.lock_alone", number=place.number).fetchone()[0]:
            raise Fault("conflict", TAKEN)
        run(db, "engine.moving.pause", number=place.number)
        rows = forget_rows(db, place.number)
        run(db, "engine.directory.bury", number=place.number)
    with transaction(pool_of(home)) as db:
        run(db, "engine.directory.unplace", tenant=tenant)
    return rows
