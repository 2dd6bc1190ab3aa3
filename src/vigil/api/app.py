"""The API over one daemon: its routes, and errors as JSON with their exit code (OpenAPI: /openapi.json)."""

from __future__ import annotations

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from vigil import __version__
from vigil.api import daemon_routes, event_routes, incident_routes, reap_routes, session_routes, team_routes
from vigil.api.access import admit
from vigil.daemon.base.log import log
from vigil.daemon.daemon import Daemon
from vigil.errors import UsageError, VigilError
from vigil.hands import Hangs
from vigil.kernel.shortage import is_shortage

STATUS = {1: 409, 2: 400, 3: 404, 4: 403, 5: 503}


def make_app(daemon: Daemon) -> FastAPI:
    """Return the API over one daemon."""
    app = FastAPI(
        title="Vigil",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(admit)],
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},  # whatever the environment says
    )
    app.state.daemon = daemon
    for routes in (daemon_routes, reap_routes, session_routes, event_routes, incident_routes, team_routes):
        app.include_router(routes.router)

    @app.exception_handler(VigilError)
    async def _failed(_: Request, error: VigilError) -> JSONResponse:
        body = {"error": str(error), "exit_code": error.exit_code, "problems": list(getattr(error, "problems", ()))}
        return JSONResponse(body, STATUS[error.exit_code])

    @app.exception_handler(OSError)
    @app.exception_handler(RuntimeError)
    async def _short(_: Request, error: Exception) -> JSONResponse:
        if not is_shortage(error):
            raise error
        why = error.strerror if isinstance(error, OSError) else str(error)
        log.warning("a caller is refused", why=str(error))
        words = f"the daemon lacks what it needs for this ({why}); vigil doctor says more"
        return JSONResponse({"error": words, "exit_code": VigilError.exit_code, "problems": []}, STATUS[VigilError.exit_code])

    @app.exception_handler(Hangs)
    async def _hung(_: Request, error: Hangs) -> JSONResponse:
        words = f"what was asked for cannot be read or written at the moment: {error}; try again"
        return JSONResponse({"error": words, "exit_code": VigilError.exit_code, "problems": []}, 503)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        words = "; ".join(f"{'.'.join(map(str, e['loc'][1:])) or e['loc'][0]}: {e['msg']}" for e in error.errors())
        return JSONResponse({"error": words, "exit_code": UsageError.exit_code}, 400)

    return app
