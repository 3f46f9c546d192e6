// Where the page begins.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ServicesContext, createServices, watchPage } from './services.ts'
import { App } from './shell/app.tsx'
import { Boundary } from './shell/boundary.tsx'
import './styles/base.css'
import './styles/shell.css'
import './styles/chat.css'
import './styles/markdown.css'
import './styles/status.css'

const services = createServices()
watchPage(services)

const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no root element')
createRoot(root).render(
  <StrictMode>
    <Boundary>
      <ServicesContext value={services}>
        <App />
      </ServicesContext>
    </Boundary>
  </StrictMode>,
)
